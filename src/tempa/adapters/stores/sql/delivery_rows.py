"""Rows of `delivery` and `delivery_attempt` as the webhooks slice's values, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.clock import from_ms, to_ms
from tempa.webhooks.model import (
    Attempt,
    ClaimedDelivery,
    DeadGroup,
    DeadReason,
    Delivery,
    DeliveryStatus,
    Message,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def message_text(message: Message) -> str:
    """What the columns beside it do not say of a message."""
    return encode(
        {
            "at": to_ms(message.at),
            "data": message.data,
            "links": message.links,
            "traceparent": message.traceparent,
        }
    )


def claimed_from(row: Mapping[str, Any]) -> ClaimedDelivery:
    """A row of `lease_delivery`."""
    return ClaimedDelivery(
        id=row["id"],
        attempt=row["attempts"],
        retries_spent=row["retries_spent"],
        url=row["url"],
        message=_message_from(row),
    )


def delivery_from(row: Mapping[str, Any]) -> Delivery:
    """A row of `delivery`, with the URL and the event's id."""
    status = DeliveryStatus(row["status"])
    finished_at = row["finished_at"]
    return Delivery(
        id=row["id"],
        event_id=row["event_id"],
        account=row["account"],
        job_id=row["job_id"],
        type=row["type"],
        endpoint_id=row["endpoint_id"],
        url=row["url"],
        status=status,
        attempts=row["attempts"],
        reason=None if row["reason"] is None else DeadReason(row["reason"]),
        created_at=from_ms(row["created_at"]),
        next_attempt_at=from_ms(row["next_at"]) if status is DeliveryStatus.PENDING else None,
        finished_at=None if finished_at is None else from_ms(finished_at),
    )


def attempt_from(row: Mapping[str, Any]) -> Attempt:
    """A row of `delivery_attempt`."""
    return Attempt(
        attempt=row["attempt"],
        started_at=from_ms(row["started_at"]),
        outcome=row["outcome"],
        http_status=row["http_status"],
        error=row["error"],
        duration_ms=row["duration_ms"],
        timings=decode(row["timings"]),
        body_sha256=row["body_sha256"],
        response_excerpt=bytes(row["response_excerpt"]),
    )


def dead_group_from(row: Mapping[str, Any]) -> DeadGroup:
    """A row of `dead_groups`."""
    return DeadGroup(
        id=row["id"],
        endpoint_id=row["endpoint_id"],
        url=row["url"],
        reason=DeadReason(row["reason"]),
        count=row["letters"],
        oldest=from_ms(row["oldest"]),
        newest=from_ms(row["newest"]),
        last_http_status=row["last_http_status"],
        last_error=row["last_error"],
    )


def _message_from(row: Mapping[str, Any]) -> Message:
    document = decode(row["message"])
    return Message(
        id=row["event_id"],
        account=row["account"],
        job_id=row["job_id"],
        type=row["type"],
        at=from_ms(document["at"]),
        data=document["data"],
        links={role: (job_id, name) for role, (job_id, name) in document["links"].items()},
        traceparent=document.get("traceparent"),
    )
