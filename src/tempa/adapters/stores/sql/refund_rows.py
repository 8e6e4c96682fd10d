"""Rows of refunds as the settlement slice's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.settlement_rows import time_from
from tempa.core.clock import from_ms
from tempa.settlement.refunds import Outcome, Refund, RefundState, Signing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def refund_from(row: Mapping[str, Any], signings: Iterable[Mapping[str, Any]] = ()) -> Refund:
    """A row of `refund` with its receipt's columns, and those of `refund_signing` that are its."""
    mine = (one for one in signings if one["refund_number"] == row["number"])
    return Refund(
        id=row["id"],
        anomaly_id=row["anomaly_id"],
        receipt=row["receipt_number"],
        cluster=row["cluster"],
        signature=row["signature"],
        slot=row["slot"],
        asset=row["asset"],
        account=row["account"],
        amount=int(row["amount"]),
        destination=row["destination"],
        note=row["note"],
        state=RefundState(row["state"]),
        reason=row["reason"],
        requested_at=from_ms(row["requested_at"]),
        ended_at=time_from(row["ended_at"]),
        signings=tuple(signing_from(one) for one in mine),
    )


def signing_from(row: Mapping[str, Any]) -> Signing:
    """A row of `refund_signing`."""
    return Signing(
        signature=row["signature"],
        raw=bytes(row["raw"]),
        last_valid_height=row["last_valid_height"],
        signed_at=from_ms(row["signed_at"]),
        sent_at=time_from(row["sent_at"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
    )
