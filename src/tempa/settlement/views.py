"""What people may see of payments, the ledger and anomalies."""

from __future__ import annotations

import base64
import codecs
from typing import TYPE_CHECKING, Any

from tempa.core.clock import from_ms, rfc3339
from tempa.settlement.inbox import InboxState
from tempa.settlement.model import SOL
from tempa.settlement.payments import words_of

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.inbox import InboxEntry
    from tempa.settlement.payments import Payment
    from tempa.settlement.post import Allocation, LedgerLine, Recorded

LEDGER_COLUMNS = (
    "id",
    "tx_signature",
    "user_wallet",
    "gpu_instance_id",
    "amount_lamports",
    "amount",
    "asset",
    "rent_seconds_added",
    "status",
    "created_at",
    "quote_id",
    "account",
    "slot",
    "block_time",
    "current_expiry",
    "price",
)
"""The first ten are those of the view `gpu_rental_ledger`, for which statements were written already."""


def payment_view(payment: Payment, *, shows_anomalies: bool) -> dict[str, Any]:
    """A payment; `shows_anomalies` to the operator, as they hold what nodes and providers said."""
    return {
        "signature": payment.signature,
        "status": str(payment.status),
        "reason": payment.reason,
        "message": words_of(payment.reason),
        "what_next": payment.what_next,
        "heard": [_heard_view(entry, is_given=payment.is_given) for entry in payment.heard],
        "receipts": [_receipt_view(one, payment.waiting(one)) for one in payment.receipts],
        "anomalies": [anomaly_view(one) for one in payment.anomalies] if shows_anomalies else [],
    }


def anomaly_view(anomaly: Anomaly) -> dict[str, Any]:
    """An anomaly, with what came as far as it is given."""
    payload, encoding = _readable(anomaly.raw, anomaly.raw_size_bytes)
    return {
        "id": anomaly.id,
        "reason": anomaly.reason,
        "message": words_of(anomaly.reason) or "",
        "error_trace": anomaly.detail,
        "signature": anomaly.signature,
        "source": anomaly.source,
        "raw_payload": payload,
        "raw_encoding": encoding,
        "raw_size_bytes": anomaly.raw_size_bytes,
        "asset": anomaly.asset,
        "account": anomaly.account,
        "amount": None if anomaly.amount is None else str(anomaly.amount),
        "quote_id": anomaly.quote_id,
        "count": anomaly.count,
        "created_at": rfc3339(anomaly.created_at),
        "seen_at": rfc3339(anomaly.seen_at),
        "resolved_at": _time(anomaly.resolved_at),
        "resolution": anomaly.resolution,
    }


def ledger_view(line: LedgerLine) -> dict[str, Any]:
    """A credit, by `LEDGER_COLUMNS`."""
    given = line.allocation
    return {
        "id": f"A{line.number}",
        "tx_signature": line.signature,
        "user_wallet": line.payer,
        "gpu_instance_id": given.gpu_instance_id,
        "amount_lamports": str(given.amount) if line.asset == SOL else None,
        "amount": str(given.amount),
        "asset": line.asset,
        "rent_seconds_added": given.seconds,
        "status": "CONFIRMED",
        "created_at": rfc3339(given.at),
        "quote_id": given.quote_id,
        "account": given.account,
        "slot": line.slot,
        "block_time": _block_time(line.block_time),
        "current_expiry": _time(given.expires_at),
        "price": None if given.price is None else f"{given.price.numerator}/{given.price.denominator}",
    }


def _heard_view(entry: InboxEntry, *, is_given: bool) -> dict[str, Any]:
    is_kept = entry.state is InboxState.CREDITED and not is_given
    return {
        "source": entry.source,
        "state": "suspense" if is_kept else str(entry.state),
        "reason": entry.reason,
        "attempts": entry.attempts,
        "received_at": rfc3339(entry.received_at),
        "next_lookup_at": _time(entry.next_at),
        "settled_at": _time(entry.settled_at),
    }


def _receipt_view(recorded: Recorded, waiting: int) -> dict[str, Any]:
    receipt = recorded.receipt
    return {
        "asset": receipt.asset,
        "amount": str(receipt.amount),
        "account": receipt.account,
        "slot": receipt.slot,
        "block_time": _block_time(receipt.block_time),
        "payer": receipt.payer,
        "posted_at": rfc3339(recorded.posted_at),
        "waiting": str(waiting),
        "allocations": [_allocation_view(one) for one in recorded.allocations],
    }


def _allocation_view(given: Allocation) -> dict[str, Any]:
    return {
        "quote_id": given.quote_id,
        "gpu_instance_id": given.gpu_instance_id,
        "amount": str(given.amount),
        "seconds": given.seconds,
        "current_expiry": _time(given.expires_at),
        "allocated_at": rfc3339(given.at),
    }


def _readable(raw: bytes | None, size_bytes: int | None) -> tuple[str | None, str | None]:
    """As text if it is UTF-8 (but for a character that was cut in two), else in base64; and which it is."""
    if raw is None:
        return None, None
    is_whole = len(raw) == size_bytes
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(raw, final=is_whole), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode(), "base64"


def _block_time(unix_seconds: int | None) -> str | None:
    return None if unix_seconds is None else rfc3339(from_ms(1000 * unix_seconds))


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
