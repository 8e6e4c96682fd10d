"""Rows of `endpoint` as the webhooks slice's values, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.clock import from_ms, to_ms
from tempa.webhooks.model import Endpoint, EndpointStatus, SealedSecret, Signing, Subscription
from tempa.webhooks.room import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from tempa.webhooks.model import NewEndpoint


def new_endpoint_row(new: NewEndpoint) -> dict[str, Any]:
    """The columns of an endpoint that registers."""
    return {"id": new.id, "account": new.account, "signing": new.signing, **endpoint_wishes(new)}


def endpoint_wishes(of: NewEndpoint | Endpoint) -> dict[str, Any]:
    """The columns that its owner may change."""
    return {
        "url": of.url,
        "host": host_of(of.url),
        "description": of.description,
        "events": None if of.events is None else encode(of.events),
        "secrets": secrets_text(of.secrets),
        "retry_statuses": encode(sorted(of.retry_statuses)) if of.retry_statuses else None,
        "in_flight_max": of.in_flight_max,
        "rate_per_second": of.rate_per_second,
    }


def endpoint_from(row: Mapping[str, Any]) -> Endpoint:
    """A row of `endpoint`, with how many deliveries wait there."""
    return Endpoint(
        id=row["id"],
        account=row["account"],
        url=row["url"],
        status=EndpointStatus(row["status"]),
        signing=Signing(row["signing"]),
        secrets=secrets_from(row["secrets"]),
        events=_names(row["events"]),
        description=row["description"],
        retry_statuses=statuses_from(row["retry_statuses"]),
        in_flight_max=row["in_flight_max"],
        rate_per_second=row["rate_per_second"],
        health=decode(row["health"]),
        parked_at=_time(row["parked_at"]),
        held_until=_time(row["held_until"] or None),
        pending=row["pending"],
        created_at=from_ms(row["created_at"]),
        changed_at=from_ms(row["changed_at"]),
        of_jobs=row["origin"] == "job",
    )


def subscription_from(row: Mapping[str, Any]) -> Subscription:
    """A row of `subscriptions`."""
    return Subscription(row["id"], row["account"], _names(row["events"]))


def secrets_text(secrets: Iterable[SealedSecret]) -> str:
    """The `secrets` column, in the order given: newest first."""
    return encode(
        [
            {
                "sealed": secret.sealed,
                "created_at": to_ms(secret.created_at),
                "expires_at": None if secret.expires_at is None else to_ms(secret.expires_at),
            }
            for secret in secrets
        ]
    )


def secrets_from(text: str | None) -> tuple[SealedSecret, ...]:
    """The `secrets` column; none of a job's URL."""
    return tuple(
        SealedSecret(
            sealed=each["sealed"],
            created_at=from_ms(each["created_at"]),
            expires_at=_time(each["expires_at"]),
        )
        for each in decode(text) or ()
    )


def statuses_from(text: str | None) -> frozenset[int]:
    """The `retry_statuses` column."""
    return frozenset(decode(text) or ())


def _names(text: str | None) -> tuple[str, ...] | None:
    names: Sequence[str] | None = decode(text)
    return None if names is None else tuple(names)


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_ms(milliseconds)
