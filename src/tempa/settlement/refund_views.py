"""What the operator sees of refunds. The bytes of a transaction are shown to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.settlement.refunds import RefundState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.settlement.refunds import Refund, Signing

_WORDS: Mapping[RefundState, str] = {
    RefundState.REQUESTED: "It waits to be signed. If it stays so, the log and the anomalies say why.",
    RefundState.SIGNED: "It is signed, and on no node yet. It cannot be given up any more.",
    RefundState.BROADCAST: "It is on its way. Until it is final, or can land no more, none else is signed.",
    RefundState.EXPIRED: "A transaction of it can land no more, and has not. Another one is signed next.",
    RefundState.FINAL: "It has arrived, and is final.",
    RefundState.FAILED: "It was not sent back: its money waits in the anomaly again.",
}


def refund_view(refund: Refund) -> dict[str, Any]:
    """A refund."""
    return {
        "id": refund.id,
        "state": str(refund.state),
        "message": _WORDS[refund.state],
        "asset": refund.asset,
        "amount": str(refund.amount),
        "recipient": refund.destination,
        "signature": refund.signature,
        "anomaly_id": refund.anomaly_id,
        "account": refund.account,
        "note": refund.note,
        "reason": refund.reason,
        "requested_at": rfc3339(refund.requested_at),
        "ended_at": _time(refund.ended_at),
        "transactions": [_transaction_view(one) for one in refund.signings],
    }


def _transaction_view(signing: Signing) -> dict[str, Any]:
    return {
        "signature": signing.signature,
        "outcome": None if signing.outcome is None else str(signing.outcome),
        "last_valid_height": signing.last_valid_height,
        "signed_at": rfc3339(signing.signed_at),
        "sent_at": _time(signing.sent_at),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)
