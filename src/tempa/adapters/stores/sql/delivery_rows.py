"""Rows of `delivery` and `delivery_attempt` as the webhooks slice's values, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.endpoint_rows import secrets_from, statuses_from
from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.clock import from_ms, to_ms
from tempa.webhooks.model import (
    Attempt,
    ClaimedDelivery,
    DeadGroup,
    DeadReason,
    Delivery,
    DeliveryStatus,
    EndpointStatus,
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
            "chain": message.chain,
        }
    )


def claimed_from(row: Mapping[str, Any], endpoint: Mapping[str, Any]) -> ClaimedDelivery:
    """A row of `lease_delivery`, and its endpoint's: whatever that is now, is what the attempt goes by."""
    return ClaimedDelivery(
        id=row["id"],
        attempt=row["attempts"],
        retries_spent=row["retries_spent"],
        url=endpoint["url"],
        message=_message_from(row),
        number=row["number"],
        endpoint_id=endpoint["id"],
        secrets=secrets_from(endpoint["secrets"]),
        retry_statuses=statuses_from(endpoint["retry_statuses"]),
    )


def delivery_from(row: Mapping[str, Any]) -> Delivery:
    """A row of `delivery`, with the event's id and what its endpoint's row says."""
    status = DeliveryStatus(row["status"])
    next_at = from_ms(max(row["next_at"], row["held_until"])) if status is DeliveryStatus.PENDING else None
    if status is DeliveryStatus.PENDING and row["parked_at"] is not None:
        status = DeliveryStatus.PARKED
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
        next_attempt_at=None if status is DeliveryStatus.PARKED else next_at,
        finished_at=None if finished_at is None else from_ms(finished_at),
        discard_reason=row["discard_reason"],
        healed=bool(row["healed"]),
        is_spent=row["message"] is None or row["endpoint_status"] == EndpointStatus.REMOVED,
        is_overtaken=bool(row["overtaken"]),
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
        hint=row["hint"],
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
        healable=row["healable"],
        spent=row["spent"],
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
        chain=document.get("chain", 0),
    )
