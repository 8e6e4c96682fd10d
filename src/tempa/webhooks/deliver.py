"""One signed attempt, and what follows from its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tempa.core.clock import to_ms
from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.retry import full_jitter
from tempa.core.work import DELIVERIES, either, pause
from tempa.webhooks.breaker import Change
from tempa.webhooks.hints import hint_of
from tempa.webhooks.model import AttemptOutcome, Backoff, DeadReason, DeliveryStatus, Next
from tempa.webhooks.ports import Answer, Outbound
from tempa.webhooks.room import Room, host_of
from tempa.webhooks.signing import webhook_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.clock import Clock
    from tempa.core.links import Links
    from tempa.core.metrics import Meter
    from tempa.core.retry import Dice, RetryPolicy
    from tempa.core.work import Wake
    from tempa.webhooks.model import ClaimedDelivery, Message
    from tempa.webhooks.ports import Sender, Settled, WebhookStore

_logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS_MAX = 24 * 3600
_RETRIED_4XX = frozenset({408, 429})  # the other 4xx say that the same request will fail again
_DEAD_ON_ERROR = {
    "blocked_address": DeadReason.BLOCKED_ADDRESS,
    "invalid_url": DeadReason.INVALID_URL,
    "too_large": DeadReason.TOO_LARGE,
}
_POLL_SECONDS = 1.0  # the truth, should every ring be lost
_CLAIM_MAX = 128  # in one transaction: others write in between
_LEASE_SLACK_SECONDS = 30.0  # past the exchange's deadline: time to write the outcome
_STORE_RETRY_SECONDS = 0.5


def render(message: Message, links: Links) -> bytes:
    """The body of one attempt: these bytes are hashed, signed and sent. Only its links are new."""
    data = dict(message.data)
    tags = {"tags": data.pop("tags")} if "tags" in data else {}  # last, as they always stood
    if message.type.endswith(".completed"):
        data["artifacts"] = {role: links.artifact(*where)[0] for role, where in message.links.items()}
    body = {
        "event": message.type,
        "type": message.type,
        "id": message.id,
        "timestamp": to_ms(message.at) // 1000,
        "data": {**data, **tags},
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def request_headers(
    message: Message, body: bytes, secrets: Sequence[str], at: datetime, user_agent: str
) -> tuple[tuple[str, str], ...]:
    """The headers of one attempt at `at`, signed with `secrets`."""
    signed = webhook_headers(secrets, message.id, to_ms(at) // 1000, body)
    headers = (("Content-Type", "application/json"), ("User-Agent", user_agent), *signed)
    trace = message.traceparent
    return (*headers, ("traceparent", trace)) if trace else headers


def follow(
    answer: Answer,
    retries_spent: int,
    policy: RetryPolicy,
    now: datetime,
    rng: Dice,
    retry_statuses: frozenset[int] = frozenset(),
) -> Next:
    """What follows from an answer: delivered, tried again after full jitter, or dead with a reason.

    `retry_statuses`: 4xx that this endpoint wants tried again, besides 408 and 429.
    """
    if answer.status is not None and 200 <= answer.status < 300:
        return Next(status=DeliveryStatus.DELIVERED)
    backoff = Backoff(policy, rng.random())  # of its own: probes must not come when retries do
    if reason := _final(answer, _RETRIED_4XX | retry_statuses):
        return Next(status=DeliveryStatus.DEAD, reason=reason, backoff=backoff)
    delay = full_jitter(retries_spent, policy, rng)
    wish = retry_after_seconds(answer.headers.get("retry-after"), now)
    # The endpoint's alone: a resume or another URL ends it, and a delivery's own time would outlive that.
    # With the jitter on top, since a receiver of many endpoints tells all of them the same moment.
    hold = wish + delay if wish else 0.0
    if retries_spent >= policy.max_retries:  # the endpoint's wish holds for its other deliveries
        return Next(
            status=DeliveryStatus.DEAD, reason=DeadReason.EXHAUSTED, hold_seconds=hold, backoff=backoff
        )
    return Next(status=DeliveryStatus.PENDING, delay_seconds=delay, hold_seconds=hold, backoff=backoff)


def _final(answer: Answer, retried_4xx: frozenset[int]) -> DeadReason | None:
    if answer.error in _DEAD_ON_ERROR:
        return _DEAD_ON_ERROR[answer.error]
    refused = answer.status is not None and 400 <= answer.status < 500
    return DeadReason.REFUSED if refused and answer.status not in retried_4xx else None


def retry_after_seconds(header: str | None, now: datetime) -> float:
    """`Retry-After` in seconds from `now`, 0 to 24 h; what cannot be read is 0 (RFC 9110 10.2.3)."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:10]), RETRY_AFTER_SECONDS_MAX))
    try:
        at = parsedate_to_datetime(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return min(max((at - now).total_seconds(), 0.0), float(RETRY_AFTER_SECONDS_MAX))
    except (ValueError, OverflowError, TypeError):
        return 0.0


class Secrets(Protocol):
    """What signs a delivery, newest first. Raises if there is nothing: it is never sent unsigned."""

    def __call__(self, claimed: ClaimedDelivery, now: datetime) -> Sequence[str]: ...


@dataclass(kw_only=True)
class Deliverer:
    """Takes due deliveries, sends each once, writes what came of it. Nothing sleeps in memory."""

    store: WebhookStore
    sender: Sender
    wake: Wake
    clock: Clock
    links: Links
    secrets: Secrets
    policy: RetryPolicy
    meter: Meter
    rng: Dice
    timeout_seconds: float
    body_bytes_max: int
    user_agent: str
    in_flight_max: int = 1024
    name: str = "deliverer"
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _room: Room = field(init=False)
    _left: asyncio.Event = field(default_factory=asyncio.Event)  # somebody left the room

    def __post_init__(self) -> None:
        self._room = Room(self.in_flight_max)

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop`, then let what is on its way come to its end."""
        with self.wake.listen(DELIVERIES) as bell:
            while not stop.is_set():
                try:
                    seconds = await self._fill()
                except StoreUnavailable:
                    _logger.warning("the store is away; deliveries wait for it")
                    seconds = _POLL_SECONDS
                if seconds > 0:
                    await either(bell.wait(seconds), stop.wait(), self._left.wait())
        if self._running:
            await asyncio.wait(self._running, timeout=self.timeout_seconds)

    async def _fill(self) -> float:
        """Take what is due and has room; returns the seconds until there may be more, 0 for at once."""
        self._left.clear()
        if self._room.free <= 0:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            return 0.0
        limit = min(self._room.free, _CLAIM_MAX)
        lease_seconds = self.timeout_seconds + _LEASE_SLACK_SECONDS
        claim = await self.store.claim_deliveries(self._room, limit, lease_seconds)
        for one in claim.taken:
            crash_point("delivery.claimed")
            self._start(one)
        if claim.taken:  # behind these may be more
            return 0.0
        return _POLL_SECONDS if claim.next_seconds is None else min(claim.next_seconds, _POLL_SECONDS)

    def _start(self, claimed: ClaimedDelivery) -> None:
        self._room.enter(claimed.message.account, host_of(claimed.url))
        task = asyncio.create_task(self._deliver(claimed))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, claimed))

    def _ended(self, claimed: ClaimedDelivery, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._room.leave(claimed.message.account, host_of(claimed.url))
        self._left.set()  # the store rang before: whoever looked at once met a full room
        if not task.cancelled() and (error := task.exception()):
            text = "an outcome could not be written; its lease will run out"
            _logger.error(text, extra=_identity(claimed), exc_info=error)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        started = self.clock.monotonic()
        body, answer = await self._attempt(claimed)
        crash_point("delivery.sent")
        then = follow(
            answer,
            claimed.retries_spent,
            self.policy,
            self.clock.now(),
            self.rng,
            claimed.retry_statuses,
        )
        outcome = AttemptOutcome(
            outcome=_OUTCOMES[then.status],
            http_status=answer.status,
            error=answer.error,
            duration_ms=round((self.clock.monotonic() - started) * 1000),
            timings=answer.timings,
            body_sha256=hashlib.sha256(body).hexdigest(),
            response_excerpt=answer.body,
            hint=hint_of(answer, self.clock.now()),
        )
        self._tell(claimed, outcome)
        self.meter.count("tempa_webhook_attempts_total", outcome=outcome.outcome)
        self.meter.observe("tempa_webhook_attempt_seconds", outcome.duration_ms / 1000)
        await self._settle(claimed, outcome, then)

    async def _attempt(self, claimed: ClaimedDelivery) -> tuple[bytes, Answer]:
        """What was to be sent, and what came of it. A fault of ours is an outcome like any other.

        Left to the lease it would spend no retry, and come back for ever; as `internal` it is on
        record, backs off, and ends in the dead letters, where a person sees it.
        """
        body = b""
        try:
            body = render(claimed.message, self.links)
            if len(body) > self.body_bytes_max:
                return body, Answer(None, "too_large")
            return body, await self.sender.send(self._outbound(claimed, body))
        except Exception:
            text = "a webhook attempt broke; it counts as a failed one"
            _logger.exception(text, extra=_identity(claimed))
            return body, Answer(None, "internal")

    def _tell(self, claimed: ClaimedDelivery, outcome: AttemptOutcome) -> None:
        level = logging.WARNING if outcome.outcome == "dead" else logging.INFO
        extra = {
            **_identity(claimed),
            "job_id": claimed.message.job_id,
            "attempt": claimed.attempt,
            "http_status": outcome.http_status,
            "error": outcome.error,
        }
        _logger.log(level, "webhook attempt: %s", outcome.outcome, extra=extra)

    def _outbound(self, claimed: ClaimedDelivery, body: bytes) -> Outbound:
        now = self.clock.now()
        secrets = self.secrets(claimed, now)
        return Outbound(
            url=claimed.url,
            headers=request_headers(claimed.message, body, secrets, now, self.user_agent),
            body=body,
            timeout_seconds=self.timeout_seconds,
        )

    async def _settle(self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> None:
        """Write the outcome. While the store is away it waits here: a 2xx must not be sent again."""
        while True:
            try:
                settled = await self.store.settle_delivery(claimed, outcome, then)
            except StoreUnavailable:
                _logger.warning("an outcome could not be written yet", extra=_identity(claimed))
                await self.clock.sleep(_STORE_RETRY_SECONDS)
            else:
                crash_point("delivery.recorded")
                if settled is not None:
                    self._count(claimed, then, settled)
                return

    def _count(self, claimed: ClaimedDelivery, then: Next, settled: Settled) -> None:
        """What is on record now, once: an outcome that came too late is none."""
        if then.status is DeliveryStatus.DELIVERED:
            age = self.clock.now() - claimed.message.at
            self.meter.observe("tempa_webhook_delivery_seconds", max(0.0, age.total_seconds()))
        if then.reason is not None:
            self.meter.count("tempa_webhook_dead_total", reason=then.reason)
        if settled.change is Change.OPENED:
            self.meter.count("tempa_webhook_breakers_opened_total")
        if settled.change is not None:
            text = "a webhook endpoint: %s"
            _logger.warning(text, settled.change, extra={"endpoint_id": claimed.endpoint_id})


def _identity(claimed: ClaimedDelivery) -> dict[str, str]:
    """What a log line says of a delivery."""
    return {"delivery_id": claimed.id, "event_id": claimed.message.id}


_OUTCOMES = {
    DeliveryStatus.DELIVERED: "delivered",
    DeliveryStatus.PENDING: "retry",
    DeliveryStatus.DEAD: "dead",
}


@dataclass(kw_only=True)
class DeliveryRescuer:
    """Makes deliveries pending again whose deliverer stopped answering."""

    store: WebhookStore
    every_seconds: float = 5.0
    name: str = "delivery-rescuer"

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`."""
        while not stop.is_set():
            try:
                await self.store.free_expired_deliveries()
            except StoreUnavailable:
                _logger.warning("the store is away; freeing expired deliveries waits for it")
            await pause(stop, self.every_seconds)
