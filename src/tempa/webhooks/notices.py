"""What an account is told of its own webhooks: an endpoint that fails or recovers, a delivery that died.

An event like those of jobs, with a place in the feed, and about no job. That a delivery of such an event died
is never told: each of those would be the next to die.

What it changes of its endpoint is told, to others: whoever watches A wants to hear that A is disabled, though
that came out at news of B. Can it go on for ever? A change is told once, and two endpoints that only fail, or
only take, soon have nothing left to change. But two that take and refuse in turns change each time they hear
of the other's change. So a chain of such tellings has four links: what a job's event came to at A; M fails at
that; A takes the news of M and recovers; M takes the news of that. A change beyond it can be seen at the
endpoint, and is told to nobody. Nor is what a telling has changed told to the endpoint itself (fanout.py).

Of a URL only the host is told: whoever may read jobs reads the feed, and a path or a query may be a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.core.clock import from_ms, rfc3339
from tempa.core.events import OPERATOR_EVENTS
from tempa.webhooks.room import host_of
from tempa.webhooks.views import what_next_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tempa.webhooks.breaker import Change, Health
    from tempa.webhooks.model import AttemptOutcome, DeadReason, Message

DEAD = "delivery.dead"

CHAIN_MAX = 3


class Notice(NamedTuple):
    """An event to be told. `chain`: how many tellings, one after the other, have led to it."""

    type: str
    data: Mapping[str, Any]
    chain: int = 0


def may_die_aloud(event_type: str) -> bool:
    """Whether it is told that a delivery of this type died."""
    return event_type not in OPERATOR_EVENTS


def chained(changes: Iterable[Notice], message: Message) -> list[Notice]:
    """What an attempt at `message` has changed, as far as that is told."""
    chain = message.chain + 1 if message.type in OPERATOR_EVENTS else 0
    return [change._replace(chain=chain) for change in changes] if chain <= CHAIN_MAX else []


def of_change(
    change: Change,
    endpoint: Mapping[str, Any],
    health: Health,
    parked_at: int | None,
    outcome: AttemptOutcome,
) -> Notice:
    """An endpoint fares otherwise than before. `health` is the worse of before and after."""
    data = {
        "endpoint_id": endpoint["id"],
        "host": host_of(endpoint["url"]),
        "reason": _REASONS[change],
        "http_status": outcome.http_status,
        "error": outcome.error,
        "failures": len(health.failed),
        "failed_probes": health.failed_probes,
        "parked_since": None if parked_at is None else rfc3339(from_ms(parked_at)),
    }
    return Notice(f"endpoint.{change}", data)


def of_death(delivery: Mapping[str, Any], endpoint: Mapping[str, Any], reason: DeadReason) -> Notice:
    """A delivery came into the dead letters."""
    data = {
        "delivery_id": delivery["id"],
        "event_id": delivery["event_id"],
        "type": delivery["type"],
        "job_id": delivery["job_id"],
        "endpoint_id": endpoint["id"],
        "host": host_of(endpoint["url"]),
        "reason": str(reason),
        "attempts": delivery["attempts"],
        "what_next": what_next_of(reason, heals=bool(delivery["heals"])),
    }
    return Notice(DEAD, data)


_REASONS = {
    "failing": "An attempt failed, the first since the last success.",
    "opened": "Three different deliveries failed in a row: what waits is parked, and one at a time probes.",
    "recovered": "It takes deliveries again: what was parked goes out, and what died of its failing.",
    "disabled": "It answered 410: nothing is sent to it until it is resumed, and what waits is parked.",
}
