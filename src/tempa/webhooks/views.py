"""What a client may see of deliveries and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.webhooks.model import HEALABLE, DeadReason, DeliveryStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.webhooks.model import Attempt, DeadGroup, Delivery

_NEXT: dict[DeadReason, str] = {
    DeadReason.EXHAUSTED: "All retries are spent. Re-drive it once the receiver answers again.",
    DeadReason.REFUSED: "The receiver refused it for good. Mend the receiver, then re-drive.",
    DeadReason.BLOCKED_ADDRESS: "The URL's host resolves to an address that may not be called.",
    DeadReason.INVALID_URL: "The URL cannot be called. Ask again with another webhook_url.",
    DeadReason.TOO_LARGE: "The body is larger than limits.webhook_body_bytes.",
    DeadReason.ENDPOINT_DOWN: "Its endpoint was down for too long. Re-drive it once that answers again.",
}
_HEALS = "It is sent once more by itself when its endpoint answers again; a re-drive does not wait for that."
_SPENT = "It cannot be sent again: its payload is past its retention, or its endpoint was removed."
_OVERTAKEN = (
    "A later event of its job was delivered there, and a job's events come in order: it is not sent by "
    "itself. Re-drive it if the receiver needs it."
)
_PARKED = (
    "Its endpoint does not answer, or is paused or disabled. It waits there without spending attempts, and "
    "goes out when the endpoint answers again or is resumed."
)

_REMOVED = "It was canceled when its endpoint was removed."


def delivery_view(delivery: Delivery, attempts: Sequence[Attempt] | None = None) -> dict[str, Any]:
    """A delivery; with `attempts` when they were asked for."""
    view: dict[str, Any] = {
        "delivery_id": delivery.id,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "job_id": delivery.job_id,
        "endpoint_id": delivery.endpoint_id,
        "url": delivery.url,
        "status": str(delivery.status),
        "attempt_count": delivery.attempts,
        "reason": str(delivery.reason) if delivery.reason else None,
        "discard_reason": delivery.discard_reason,
        "what_next": what_next(delivery),
        "created_at": rfc3339(delivery.created_at),
        "next_attempt_at": _time(delivery.next_attempt_at),
        "finished_at": _time(delivery.finished_at),
    }
    if attempts is not None:
        view["attempts"] = [attempt_view(attempt) for attempt in attempts]
    return view


def what_next(delivery: Delivery) -> str:
    """In words: what will happen to a delivery, or what a person can do."""
    if delivery.status is DeliveryStatus.DEAD and delivery.reason:
        return _SPENT if delivery.is_spent else _what_next_of_dead(delivery, delivery.reason)
    if delivery.status is DeliveryStatus.PENDING and delivery.next_attempt_at:
        return f"It is sent again at {rfc3339(delivery.next_attempt_at)}."
    return {
        DeliveryStatus.PARKED: _PARKED,
        DeliveryStatus.LEASED: "It is being sent.",
        DeliveryStatus.DELIVERED: "It was delivered.",
        DeliveryStatus.CANCELED: _REMOVED if delivery.discard_reason is None else "It was discarded.",
    }.get(delivery.status, "It waits.")


def _what_next_of_dead(delivery: Delivery, reason: DeadReason) -> str:
    if reason in HEALABLE and delivery.is_overtaken:
        return _OVERTAKEN
    return what_next_of(reason, heals=delivery.heals)


def what_next_of(reason: DeadReason, *, heals: bool) -> str:
    """In words: what will happen to what died for this reason, or what a person can do."""
    return _HEALS if heals else _NEXT[reason]


def attempt_view(attempt: Attempt) -> dict[str, Any]:
    """One attempt. An open one was on its way when its deliverer died: it may have arrived."""
    return {
        "attempt": attempt.attempt,
        "started_at": rfc3339(attempt.started_at),
        "outcome": attempt.outcome or "unknown",
        "http_status": attempt.http_status,
        "error": attempt.error,
        "duration_ms": attempt.duration_ms,
        "timings": dict(attempt.timings),
        "body_sha256": attempt.body_sha256,
        "response_excerpt": attempt.response_excerpt.decode(errors="replace"),
        "hint": attempt.hint,
    }


def group_view(group: DeadGroup) -> dict[str, Any]:
    """Dead letters of one URL and one reason."""
    return {
        "group": group.id,
        "url": group.url,
        "endpoint_id": group.endpoint_id,
        "reason": str(group.reason),
        "count": group.count,
        "oldest": rfc3339(group.oldest),
        "newest": rfc3339(group.newest),
        "last_http_status": group.last_http_status,
        "last_error": group.last_error,
        "heals": group.healable,
        "spent": group.spent,
        "what_next": _what_next_of_all(group),
    }


def _what_next_of_all(group: DeadGroup) -> str:
    """Letters of one reason may differ: some were sent once more already, some are past their payload."""
    if group.spent == group.count:
        return _SPENT
    return what_next_of(group.reason, heals=group.healable + group.spent == group.count)


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
