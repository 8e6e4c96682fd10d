"""Deliveries: from an event to an answer, or to the dead letters with its history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class DeliveryStatus(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    LEASED = "leased"
    PARKED = "parked"
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELED = "canceled"


class DeadReason(StrEnum):
    """Why a delivery is dead."""

    EXHAUSTED = "exhausted"  # all retries spent
    REFUSED = "refused"  # a final 4xx
    BLOCKED_ADDRESS = "blocked_address"
    INVALID_URL = "invalid_url"
    TOO_LARGE = "too_large"  # the body passed the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What an event says to the outside: immutable, but for the links minted at each attempt.

    `links` maps an artifact's role to where it lies (`job_id`, `name`); rendering puts a fresh
    URL there (CONTRACTS section 3).
    """

    id: str  # evt_…: the webhook-id of every attempt
    account: str
    job_id: str
    type: str  # "cad_generation.completed"
    at: datetime
    data: Mapping[str, Any]
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    traceparent: str | None = None  # of the request that caused it; goes along as a header


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery that fan-out wants. Once for each event and URL, by a unique index."""

    id: str  # dlv_…
    url: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An event with what fan-out made of it: possibly no delivery at all."""

    event_id: str
    deliveries: tuple[NewDelivery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery a deliverer has just taken; its attempt row is open."""

    id: str
    attempt: int  # 1 for the first of this delivery's life, counted over re-drives too
    retries_spent: int  # retries of the present round: 0 at the first attempt and after a re-drive
    url: str
    message: Message


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """What a deliverer got, and when it is worth asking again though no ring comes."""

    taken: tuple[ClaimedDelivery, ...]
    next_seconds: float | None  # until the next one is due; None: no other is


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """How one attempt ended: what closes its row."""

    outcome: str  # "delivered", "retry", "dead"
    http_status: int | None
    error: str | None
    duration_ms: int
    timings: Mapping[str, float]
    body_sha256: str
    response_excerpt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What follows from an attempt.

    `delay_seconds` belongs to `pending`, `reason` to `dead`. `hold_seconds` gates every delivery
    to the same URL (Retry-After), whatever becomes of this one.
    """

    status: DeliveryStatus
    delay_seconds: float = 0.0
    hold_seconds: float = 0.0
    reason: DeadReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as it stands on record. Open (no outcome) means it was under way at a crash."""

    attempt: int
    started_at: datetime
    outcome: str | None
    http_status: int | None
    error: str | None
    duration_ms: int | None
    timings: Mapping[str, float]
    body_sha256: str | None
    response_excerpt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as people see it."""

    id: str
    event_id: str
    account: str
    job_id: str
    type: str
    endpoint_id: str
    url: str
    status: DeliveryStatus
    attempts: int
    reason: DeadReason | None
    created_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of one URL and one reason."""

    id: str
    endpoint_id: str
    url: str
    reason: DeadReason
    count: int
    oldest: datetime
    newest: datetime
    last_http_status: int | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """Which dead letters are meant. All given conditions hold; none given means none meant."""

    delivery_ids: tuple[str, ...] = ()
    endpoint_id: str | None = None
    group: str | None = None
    since: datetime | None = None
