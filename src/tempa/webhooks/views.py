"""What a client may see of deliveries and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.webhooks.model import DeadReason, DeliveryStatus

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
}


def delivery_view(delivery: Delivery, attempts: Sequence[Attempt] | None = None) -> dict[str, Any]:
    """A delivery; with `attempts` when they were asked for."""
    view = {
        "delivery_id": delivery.id,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "job_id": delivery.job_id,
        "endpoint_id": delivery.endpoint_id,
        "url": delivery.url,
        "status": str(delivery.status),
        "attempt_count": delivery.attempts,
        "reason": str(delivery.reason) if delivery.reason else None,
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
        return _NEXT[delivery.reason]
    if delivery.status is DeliveryStatus.PENDING and delivery.next_attempt_at:
        return f"It is sent again at {rfc3339(delivery.next_attempt_at)}."
    return {
        DeliveryStatus.LEASED: "It is being sent.",
        DeliveryStatus.DELIVERED: "It was delivered.",
        DeliveryStatus.CANCELED: "It was discarded.",
    }.get(delivery.status, "It waits.")


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
        "what_next": _NEXT[group.reason],
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
