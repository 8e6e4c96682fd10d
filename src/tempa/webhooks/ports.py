"""What the webhooks slice asks of the world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tempa.core.events import Event
    from tempa.webhooks.breaker import Change
    from tempa.webhooks.model import (
        Attempt,
        AttemptOutcome,
        ClaimedDelivery,
        DeadFilter,
        DeadGroup,
        Delivery,
        DeliveryClaim,
        DeliveryStatus,
        Endpoint,
        EndpointChange,
        NewEndpoint,
        Next,
        Planned,
        SealedSecret,
        Subscription,
    )
    from tempa.webhooks.room import Room


@dataclass(frozen=True, slots=True)
class Outbound:
    """One HTTP request to send: exactly these bytes, to exactly this URL."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    timeout_seconds: float
    method: str = "POST"
    response_bytes_max: int = 16_384


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it. `status` is None when no valid answer came; then `error` says why.

    `error` is one of a closed set: `blocked_address`, `dns`, `connect_refused`,
    `connect_timeout`, `unreachable`, `tls`, `timeout`, `reset`, `protocol_error`,
    `headers_too_large`, `invalid_url`, `transport`; and two of the deliverer's own, for what was
    never sent: `too_large` (the body) and `internal` (a fault of ours). `timings` are seconds since
    the start: `name_lookup`, `connect`, `tls`, `first_byte`, `total`. `certificate_expires_at` is when the
    receiver's certificate ends, where it was shown: in a full TLS handshake, and not on a kept connection.
    """

    status: int | None
    error: str | None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timings: Mapping[str, float] = field(default_factory=dict)
    peer: str | None = None
    certificate_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """An outcome was written, and this is what it changed of its endpoint."""

    change: Change | None = None


class Sender(Protocol):
    """The one outbound HTTP transport. Never raises for anything a receiver can do."""

    async def send(self, request: Outbound) -> Answer: ...
    async def close(self) -> None: ...


class WebhookStore(Protocol):
    """Durable deliveries. Each command is one whole transaction and rings what it changed.

    But `redrive` and `discard` are many short ones, so that however many letters are meant, nobody
    waits long behind them; cut off in the middle, they have done the oldest letters wholly. A store
    that cannot be reached or written raises `StoreUnavailable`.
    """

    async def unplanned(self, limit: int) -> list[Event]: ...  # events not yet fanned out, oldest first
    async def fan_out(self, planned: Sequence[Planned]) -> int: ...  # gives positions; new deliveries
    async def claim_deliveries(
        self, room: Room, limit: int, lease_seconds: float
    ) -> DeliveryClaim: ...  # only what `room` admits, which it leaves as it is
    async def settle_delivery(
        self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next
    ) -> Settled | None: ...  # taken until the delivery is claimed again, though its lease ran out
    async def void_delivery_leases(self) -> int: ...  # at start: the dead instance's become pending
    async def free_expired_deliveries(self) -> int: ...  # leases that ran out become pending again

    async def deliveries(
        self,
        account: str,
        *,
        status: DeliveryStatus | None,
        job_id: str | None,
        endpoint_id: str | None,
        limit: int,
        before: str | None,
    ) -> list[Delivery]: ...  # newest first; `before` is the id to go on from
    async def delivery(self, account: str, delivery_id: str) -> tuple[Delivery, list[Attempt]] | None: ...
    async def dead_groups(self, account: str) -> list[DeadGroup]: ...
    async def count_dead(self, account: str, which: DeadFilter) -> int: ...
    async def dead_letters(
        self, account: str, which: DeadFilter, limit: int, before: str | None
    ) -> list[Delivery]: ...  # newest first; `before` is the id to go on from
    async def count_spent(self, account: str, which: DeadFilter) -> int: ...  # of them: cannot be sent again
    async def redrive(self, account: str, which: DeadFilter, spacing_seconds: float) -> int: ...
    async def discard(self, account: str, which: DeadFilter, reason: str) -> int: ...
    async def add_endpoint(
        self, new: NewEndpoint, endpoints_max: int
    ) -> Endpoint | None: ...  # None: the account has as many already
    async def endpoints(
        self, account: str, limit: int, before: str | None
    ) -> list[Endpoint]: ...  # registered ones, newest first
    async def endpoint(
        self, account: str, endpoint_id: str
    ) -> Endpoint | None: ...  # a job's URL too; not a removed one
    async def endpoint_anywhere(self, endpoint_id: str) -> Endpoint | None: ...  # `pending` is not counted
    async def change_endpoint(
        self, account: str, endpoint_id: str, change: EndpointChange
    ) -> Endpoint | None: ...
    async def rotate_endpoint(
        self, account: str, endpoint_id: str, fresh: SealedSecret, overlap_seconds: float
    ) -> Endpoint | None: ...
    async def pause_endpoint(self, account: str, endpoint_id: str) -> Endpoint | None: ...
    async def resume_endpoint(self, account: str, endpoint_id: str) -> Endpoint | None: ...  # a job's URL too
    async def remove_endpoint(
        self, account: str, endpoint_id: str
    ) -> bool: ...  # cancels what waits there; many short transactions if that is much
    async def test_endpoint(
        self, account: str, endpoint_id: str
    ) -> tuple[str, str] | None: ...  # the ids of the delivery and of its event
    async def feed_end(self, account: str) -> int: ...  # the position of the account's newest event; 0: none
    async def subscriptions(self, accounts: Sequence[str]) -> list[Subscription]: ...
    async def heal(self, limit: int) -> int: ...  # dead letters of endpoints that answer again
    async def expire_parked(self, after_seconds: float, limit: int) -> int: ...  # dead: endpoint_down
    async def cancel_stranded(self, limit: int) -> int: ...  # what waits at removed endpoints
    async def parked_endpoints(self) -> Mapping[str, int]: ...  # why -> endpoints
    async def line_seconds(self) -> float: ...  # how long something could have been sent already
    async def delivery_counts(self) -> Mapping[str, int]: ...  # status -> deliveries
    async def prune_payloads(self, before: datetime, limit: int) -> int: ...  # of finished ones only
    async def prune_deliveries(self, before: datetime, limit: int) -> int: ...  # finished ones only
    async def prune_notices(self, before: datetime, limit: int) -> int: ...  # events about no job
