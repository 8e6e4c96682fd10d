"""Rows of quotes, rentals, the inbox and anomalies as the settlement slice's values, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.clock import from_ms, to_ms
from tempa.settlement.anomalies import Anomaly
from tempa.settlement.inbox import Cursor, InboxEntry, InboxState, Unread
from tempa.settlement.model import QuoteStatus
from tempa.settlement.quotes import Leg, NewQuote, Price, PriceOffer, Progress, Quote
from tempa.settlement.rentals import ActKind, GpuInstance, InstanceAct, Rental

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from tempa.settlement.anomalies import NewAnomaly


def plain(text: str) -> str:
    """Text from outside as every database keeps it: without U+0000 and lone surrogates."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def ascii_json(value: Any) -> str:
    """JSON of what came from outside: in escapes even what no text can hold."""
    return json.dumps(value, separators=(",", ":"), default=dict)


def prices_text(prices: Iterable[PriceOffer]) -> str:
    """The `prices` column. Amounts as text: beyond 2**53 JSON's readers disagree on numbers."""
    return encode([[each.asset, str(each.amount), each.seconds] for each in prices])


def prices_from(text: str) -> tuple[PriceOffer, ...]:
    """The `prices` column."""
    return tuple(PriceOffer(asset, int(amount), seconds) for asset, amount, seconds in decode(text))


def quote_row(new: NewQuote) -> dict[str, Any]:
    """The columns of a quote as it is made."""
    return {
        "id": new.id,
        "account": new.account,
        "gpu_instance_id": new.gpu_instance_id,
        "asset": new.asset,
        "decimals": new.decimals,
        "treasury": new.treasury,
        "seconds": new.seconds,
        "amount": str(new.amount),
        "price_numerator": str(new.price.numerator),
        "price_denominator": str(new.price.denominator),
        "reference": new.reference,
        "created_at": to_ms(new.created_at),
        "expires_at": to_ms(new.expires_at),
    }


def quote_from(row: Mapping[str, Any], now: datetime | None = None) -> Quote:
    """A row of `quote`; one that nobody paid is expired, if that is so at `now`."""
    offer = NewQuote(
        id=row["id"],
        account=row["account"],
        gpu_instance_id=row["gpu_instance_id"],
        asset=row["asset"],
        decimals=row["decimals"],
        treasury=row["treasury"],
        seconds=row["seconds"],
        amount=int(row["amount"]),
        price=Price(int(row["price_numerator"]), int(row["price_denominator"])),
        reference=row["reference"],
        created_at=from_ms(row["created_at"]),
        expires_at=from_ms(row["expires_at"]),
    )
    status = QuoteStatus(row["status"])
    if status is QuoteStatus.OPEN and now is not None and now >= offer.expires_at:
        status = QuoteStatus.EXPIRED
    return Quote(
        offer=offer,
        status=status,
        legs=legs_from(row["legs"]),
        granted_seconds=row["granted_seconds"],
        seen=_progress(row, "seen"),
        final=_progress(row, "final"),
        credited=_progress(row, "credited"),
        signature=row["signature"],
        reason=row["reason"],
    )


def legs_text(legs: Iterable[Leg]) -> str:
    """The `legs` column, in texts for the same reason."""
    return encode([[str(leg.price.numerator), str(leg.price.denominator), str(leg.paid)] for leg in legs])


def legs_from(text: str) -> tuple[Leg, ...]:
    """The `legs` column."""
    return tuple(
        Leg(Price(int(numerator), int(denominator)), int(paid))
        for numerator, denominator, paid in decode(text)
    )


def _progress(row: Mapping[str, Any], name: str) -> Progress | None:
    at = row[f"{name}_at"]
    return None if at is None else Progress(from_ms(at), row[f"{name}_slot"])


def rental_from(row: Mapping[str, Any], gpu_instance_id: str) -> Rental:
    """The columns of `rental`."""
    return Rental(
        gpu_instance_id=gpu_instance_id,
        account=row["account"],
        started_at=from_ms(row["started_at"]),
        expires_at=from_ms(row["expires_at"]),
        seconds=row["seconds"],
        is_in_grace=bool(row["in_grace"]),
        quote_id=row["quote_id"],
        signature=row["signature"],
        ended_at=time_from(row["ended_at"]),
    )


def instance_from(row: Mapping[str, Any]) -> GpuInstance:
    """A row of `gpu_instance` with its latest rental, which may be none."""
    return GpuInstance(
        id=row["id"],
        name=row["name"],
        prices=prices_from(row["prices"]),
        created_at=from_ms(row["created_at"]),
        suspended_at=time_from(row["suspended_at"]),
        rental=None if row["account"] is None else rental_from(row, row["id"]),
    )


def act_from(row: Mapping[str, Any]) -> InstanceAct:
    """A row of `instance_act`."""
    return InstanceAct(
        number=row["number"],
        gpu_instance_id=row["gpu_instance_id"],
        kind=ActKind(row["kind"]),
        prices=None if row["prices"] is None else prices_from(row["prices"]),
        after_entry=row["after_entry"],
        at=from_ms(row["at"]),
    )


def cursor_row(cursor: Cursor) -> dict[str, Any]:
    """The columns of how far a history was read."""
    unread = cursor.unread
    return {
        "slot": cursor.slot,
        "signature": cursor.signature,
        "unread_before": None if unread is None else unread.before,
        "unread_slot": None if unread is None else unread.slot,
        "unread_floor": None if unread is None else unread.floor,
        "unread_known": None if unread is None else unread.known,
    }


def cursor_from(row: Mapping[str, Any]) -> Cursor:
    """A row of `cursor`."""
    if row["unread_slot"] is None:
        return Cursor(row["slot"], row["signature"])
    names = ("before", "slot", "floor", "known")
    unread = Unread(**{name: row[f"unread_{name}"] for name in names})
    return Cursor(row["slot"], row["signature"], unread)


def inbox_entry_from(row: Mapping[str, Any]) -> InboxEntry:
    """A row of `inbox`."""
    state = InboxState(row["state"])
    return InboxEntry(
        source=row["source"],
        signature=row["signature"],
        state=state,
        reason=row["reason"],
        attempts=row["attempts"],
        received_at=from_ms(row["received_at"]),
        next_at=from_ms(row["next_at"]) if state is InboxState.PENDING else None,
        settled_at=time_from(row["settled_at"]),
    )


def anomaly_row(new: NewAnomaly) -> dict[str, Any]:
    """The columns of an anomaly as it is noted."""
    return {
        "key": plain(new.key),
        "reason": new.reason,
        "source": new.source,
        "signature": new.signature,
        "detail": plain(new.detail),
        "raw": new.raw,
        "call_id": new.call_id,
        "asset": None if new.asset is None else plain(new.asset),
        "account": None if new.account is None else plain(new.account),
        "amount": None if new.amount is None else str(new.amount),
        "receipt_number": new.receipt,
        "quote_id": new.quote_id,
        "times": new.times,
    }


def anomaly_from(row: Mapping[str, Any]) -> Anomaly:
    """A row of `anomaly`, with what was kept of its call."""
    return Anomaly(
        id=row["id"],
        key=row["key"],
        reason=row["reason"],
        source=row["source"],
        signature=row["signature"],
        detail=row["detail"],
        raw=b"" if row["kept_bytes"] == 0 else row["kept"],  # SQLite cuts nothing out of nothing: null
        raw_size_bytes=row["kept_bytes"],
        asset=row["asset"],
        account=row["account"],
        amount=None if row["amount"] is None else int(row["amount"]),
        receipt=row["receipt_number"],
        quote_id=row["quote_id"],
        count=row["count"],
        created_at=from_ms(row["created_at"]),
        seen_at=from_ms(row["seen_at"]),
        resolved_at=time_from(row["resolved_at"]),
        resolution=row["resolution"],
    )


def anomalies_from(rows: Sequence[Mapping[str, Any]]) -> list[Anomaly]:
    """Rows of `anomaly`."""
    return [anomaly_from(row) for row in rows]


def time_from(milliseconds: int | None) -> datetime | None:
    """A column of time that may be null."""
    return None if milliseconds is None else from_ms(milliseconds)
