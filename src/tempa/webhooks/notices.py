"""What an account is told of its own webhooks: an endpoint that fails or recovers, a delivery that died.

An event like those of jobs, with a place in the feed, and about no job. Never told is what a delivery of
such an event comes to: an endpoint that fails at them would be told of that for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import from_ms, rfc3339
from tempa.core.events import OPERATOR_EVENTS
from tempa.webhooks.views import what_next_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.webhooks.breaker import Change, Health
    from tempa.webhooks.model import AttemptOutcome, DeadReason

DEAD = "delivery.dead"

Notice = tuple[str, "Mapping[str, Any]"]  # the event's type, and what it tells


def may_be_told_of(event_type: str) -> bool:
    """Whether what a delivery of this type comes to is told."""
    return event_type not in OPERATOR_EVENTS


def of_change(
    change: Change,
    endpoint: Mapping[str, Any],
    health: Health,
    parked_at: int | None,
    outcome: AttemptOutcome,
) -> Notice:
    """An endpoint fares otherwise than before. `health` is the worse of before and after."""
    return f"endpoint.{change}", {
        "endpoint_id": endpoint["id"],
        "url": endpoint["url"],
        "reason": _REASONS[change],
        "http_status": outcome.http_status,
        "error": outcome.error,
        "failures": len(health.failed),
        "failed_probes": health.failed_probes,
        "parked_since": None if parked_at is None else rfc3339(from_ms(parked_at)),
    }


def of_death(delivery: Mapping[str, Any], endpoint: Mapping[str, Any], reason: DeadReason) -> Notice:
    """A delivery came into the dead letters."""
    return DEAD, {
        "delivery_id": delivery["id"],
        "event_id": delivery["event_id"],
        "type": delivery["type"],
        "job_id": delivery["job_id"],
        "endpoint_id": endpoint["id"],
        "url": endpoint["url"],
        "reason": str(reason),
        "attempts": delivery["attempts"],
        "what_next": what_next_of(reason, heals=bool(delivery["heals"])),
    }


_REASONS = {
    "failing": "An attempt failed, the first since the last success.",
    "opened": "Three different deliveries failed in a row: what waits is parked, and one at a time probes.",
    "recovered": "It takes deliveries again: what was parked goes out, and what died of its failing.",
    "disabled": "It answered 410: nothing is sent to it until it is resumed, and what waits is parked.",
}
