"""What an attempt means to its endpoint: written behind that one's lock, and told in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.sql import decode, encode
from tempa.webhooks import notices
from tempa.webhooks.breaker import Change, Health, Result, after, owing, verdict_of
from tempa.webhooks.model import DeadReason, DeliveryStatus, EndpointStatus
from tempa.webhooks.pace import interval_ms
from tempa.webhooks.room import standing_after

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.breaker import After
    from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, Next
    from tempa.webhooks.notices import Notice


_NOTED = ("status", "health", "parked_at", "held_until", "pace_ms", "healing", "standing")
_WANT_NOTHING = (EndpointStatus.DISABLED, EndpointStatus.REMOVED)


@dataclass(frozen=True, slots=True)
class Noted:
    """An endpoint as it is after an attempt, what that changed, and what is to be told of it."""

    endpoint: Any
    change: Change | None = None
    notices: tuple[Notice, ...] = ()


def note_attempt(endpoint: Any, ended: Any, outcome: AttemptOutcome, then: Next, now: int) -> Flow[Noted]:
    """Write what an attempt has changed of its endpoint, nothing if that is nothing."""
    standing = int(standing_after(outcome.duration_ms))
    if _all_is_well(endpoint, then) and endpoint["standing"] == standing:  # 15 us of the 150 of a delivery
        return Noted(endpoint)
    before = Health.of(decode(endpoint["health"]))
    result = Result(
        delivery=ended["number"],
        verdict=verdict_of(outcome, then),
        started_at=ended["started_at"],
        at=now,
        exhausted=then.reason is DeadReason.EXHAUSTED,
    )
    follows = after(before, result, then.backoff.policy, then.backoff)
    columns = _columns(endpoint, follows, then, now)
    columns["standing"] = standing
    if follows.heals and not columns["healing"]:
        columns["healing"] = int(bool((yield ASK.any_to_heal(endpoint_number=endpoint["number"]))))
    if any(endpoint[name] != value for name, value in columns.items()):
        yield ASK.note_health(endpoint_number=endpoint["number"], **columns)
    after_it = {**dict(endpoint), **columns}
    change = _news(endpoint, follows.change)
    if change is None:
        return Noted(after_it)
    worse = before if change in (Change.RECOVERED, Change.DISABLED) else follows.health
    parked_at = endpoint["parked_at"] if change is Change.RECOVERED else columns["parked_at"]
    return Noted(after_it, change, (notices.of_change(change, endpoint, worse, parked_at, outcome),))


def note_elsewhere(endpoint: Any, then: Next) -> Flow[Noted]:
    """A URL that the endpoint has left tells nothing of the one it has. What died there is healed here."""
    health = Health.of(decode(endpoint["health"]))
    if then.reason is not DeadReason.EXHAUSTED or health.owes:
        return Noted(endpoint)
    columns = {name: endpoint[name] for name in _NOTED} | {"health": health_text(owing(health))}
    yield ASK.note_health(endpoint_number=endpoint["number"], **columns)
    return Noted({**dict(endpoint), **columns})


def _all_is_well(endpoint: Any, then: Next) -> bool:
    """What is taken says nothing new of an endpoint that has not failed and is not parked."""
    is_taken = then.status is DeliveryStatus.DELIVERED and not then.hold_seconds
    return is_taken and endpoint["health"] is None and endpoint["parked_at"] is None


def death(endpoint: Any, claimed: ClaimedDelivery, then: Next, *, healed: bool) -> tuple[Notice, ...]:
    """What is to be told of a delivery that may have died."""
    if then.status is not DeliveryStatus.DEAD or then.reason is None:
        return ()
    delivery = {
        "id": claimed.id,
        "event_id": claimed.message.id,
        "type": claimed.message.type,
        "job_id": claimed.message.job_id,
        "attempts": claimed.attempt,
        "heals": then.reason is DeadReason.EXHAUSTED and not healed,
    }
    return (notices.of_death(delivery, endpoint, then.reason),)


def health_text(health: Health) -> str | None:
    """The `health` column: null for a healthy endpoint."""
    stored = health.as_dict()
    return None if stored is None else encode(stored)


def _columns(endpoint: Any, follows: After, then: Next, now: int) -> dict[str, Any]:
    """The endpoint's columns afterwards. A hold only ever grows: the later end is the safe one."""
    health = follows.health
    hold_seconds = max(then.hold_seconds, follows.hold_seconds)
    pace = None if health.is_open else health.pace
    status = endpoint["status"]
    if follows.change is Change.DISABLED and status != EndpointStatus.REMOVED:
        status = EndpointStatus.DISABLED.value
    return {
        "status": status,
        "health": health_text(health),
        "parked_at": _parked_at(endpoint, status, health, now),
        "held_until": max(endpoint["held_until"], now + round(hold_seconds * 1000) if hold_seconds else 0),
        "pace_ms": interval_ms(pace) or None,
        "healing": endpoint["healing"],
    }


def _parked_at(endpoint: Any, status: str, health: Health, now: int) -> int | None:
    """Since when deliveries are parked: by the breaker, or by what the owner or the receiver wants."""
    if status == EndpointStatus.ACTIVE:
        return health.opened_at
    parked_at: int | None = endpoint["parked_at"]
    return now if parked_at is None and status == EndpointStatus.DISABLED else parked_at


def _news(endpoint: Any, change: Change | None) -> Change | None:
    """Of four attempts that were on their way, each may be answered 410: that is told once."""
    is_old = change is Change.DISABLED and endpoint["status"] in _WANT_NOTHING
    return None if is_old else change
