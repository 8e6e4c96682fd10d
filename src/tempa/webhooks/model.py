"""Deliveries: from an event to an answer, or to the dead letters with its history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tempa.core.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class DeliveryStatus(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    LEASED = "leased"
    PARKED = "parked"  # pending at an endpoint whose deliveries are parked; in the store it is pending
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
    ENDPOINT_DOWN = "endpoint_down"  # parked for too long


HEALABLE = (DeadReason.EXHAUSTED, DeadReason.ENDPOINT_DOWN)
"""Dead of an outage: sent again once by themselves when the endpoint answers again."""


class EndpointStatus(StrEnum):
    """What an endpoint's owner, or its receiver, wants."""

    ACTIVE = "active"
    PAUSED = "paused"  # by its owner; what comes meanwhile is parked
    DISABLED = "disabled"  # it answered 410; until its owner resumes it
    REMOVED = "removed"


class Signing(StrEnum):
    """How an endpoint's deliveries are signed."""

    HMAC = "hmac"
    ED25519 = "ed25519"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSecret:
    """A signing secret as the store keeps it: encrypted, bound to its endpoint's id."""

    sealed: str
    created_at: datetime
    expires_at: datetime | None = None  # None: in force until it is rotated out


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """An endpoint to register. `events`: None for the default of a job's webhook_url."""

    id: str  # ep_…
    account: str
    url: str
    signing: Signing
    secrets: tuple[SealedSecret, ...]
    events: tuple[str, ...] | None = None
    description: str = ""
    retry_statuses: frozenset[int] = frozenset()
    in_flight_max: int = 4
    rate_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A registered endpoint as people see it, with how it fares."""

    id: str
    account: str
    url: str
    status: EndpointStatus
    signing: Signing
    secrets: tuple[SealedSecret, ...]
    events: tuple[str, ...] | None
    description: str
    retry_statuses: frozenset[int]
    in_flight_max: int
    rate_per_second: float | None
    health: Mapping[str, Any] | None  # webhooks/breaker.py; None: no failure since its last success
    parked_at: datetime | None
    held_until: datetime | None  # no attempt before then
    pending: int  # deliveries that wait, parked ones too
    created_at: datetime
    changed_at: datetime
    of_jobs: bool = False  # made of a job's webhook_url: looked at and resumed, not changed


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointChange:
    """What to change of an endpoint; what is not given stays. `events` may be given as the default (None)."""

    values: Mapping[str, Any]  # by field of Endpoint: url, events, description, retry_statuses, …


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which events a registered endpoint wants. `events`: None for the default."""

    endpoint_id: str
    account: str
    events: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What an event says to the outside: immutable, but for the links minted at each attempt.

    `links` maps an artifact's role to where it lies (`job_id`, `name`); rendering puts a fresh
    URL there (CONTRACTS section 3).
    """

    id: str  # evt_…: the webhook-id of every attempt
    account: str
    job_id: str | None  # None: about an endpoint or a delivery, not about a job
    type: str  # "cad_generation.completed"
    at: datetime
    data: Mapping[str, Any]
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    traceparent: str | None = None  # of the request that caused it; goes along as a header
    chain: int = 0  # of an event about an endpoint: webhooks/notices.py


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery that fan-out wants. Once for each event and endpoint, by a unique index.

    To a registered endpoint if `endpoint_id` is given, else to the job's `url`.
    """

    id: str  # dlv_…
    message: Message
    url: str | None = None
    endpoint_id: str | None = None


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
    number: int = 0  # the store's own, by which the breaker tells deliveries apart
    endpoint_id: str = ""
    secrets: tuple[SealedSecret, ...] = ()  # of a registered endpoint, newest first; else the account's own
    retry_statuses: frozenset[int] = frozenset()  # 4xx that this endpoint wants retried


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
    hint: str | None = None  # webhooks/hints.py


@dataclass(frozen=True, slots=True)
class Backoff:
    """The policy in force and one throw of the dice: by these the store reckons when to probe.

    Thrown beforehand, so that a transaction that runs again comes to the same.
    """

    policy: RetryPolicy = RetryPolicy()
    thrown: float = 0.5  # uniform in [0, 1)

    def random(self) -> float:
        """The throw, as dice."""
        return self.thrown


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What follows from an attempt.

    `delay_seconds` belongs to `pending`, `reason` to `dead`. `hold_seconds` gates every delivery
    to the same endpoint (Retry-After), whatever becomes of this one. `backoff` is for what the attempt
    may mean to its endpoint.
    """

    status: DeliveryStatus
    delay_seconds: float = 0.0
    hold_seconds: float = 0.0
    reason: DeadReason | None = None
    backoff: Backoff = Backoff()


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
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as people see it."""

    id: str
    event_id: str
    account: str
    job_id: str | None
    type: str
    endpoint_id: str
    url: str
    status: DeliveryStatus
    attempts: int
    reason: DeadReason | None
    created_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None
    discard_reason: str | None = None  # why a person let it go
    healed: bool = False  # it was sent once more by itself, after an outage
    is_spent: bool = False  # cannot be sent again: its payload is past its retention, or its endpoint removed
    is_overtaken: bool = False  # dead, and a later event of its job was delivered there

    @property
    def heals(self) -> bool:
        """Whether it is dead of an outage, and goes out once more by itself."""
        return self.reason in HEALABLE and not (self.healed or self.is_spent or self.is_overtaken)


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
    healable: int = 0  # of them: sent once more by themselves when the endpoint answers again
    spent: int = 0  # of them: cannot be sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadFilter:
    """Which dead letters are meant. All given conditions hold; none given means none meant."""

    delivery_ids: tuple[str, ...] = ()
    endpoint_id: str | None = None
    group: str | None = None
    since: datetime | None = None
