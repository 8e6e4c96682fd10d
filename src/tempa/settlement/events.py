"""What is told of rentals and payments: names and data of the slice's events (CONTRACTS section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.settlement.reasons import REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.settlement.rentals import Rental

CREDITED = "gpu_rental.credited"
EXPIRING = "gpu_rental.expiring"
EXPIRED = "gpu_rental.expired"
UNMATCHED = "payment.unmatched"


def credited(
    *, gpu_instance_id: str, quote_id: str, signature: str, seconds: int, expires_at: datetime
) -> Mapping[str, Any]:
    """Data of `gpu_rental.credited`: what one payment bought."""
    return {
        "gpu_instance_id": gpu_instance_id,
        "quote_id": quote_id,
        "signature": signature,
        "seconds": seconds,
        "current_expiry": rfc3339(expires_at),
    }


def of_rental(rental: Rental) -> Mapping[str, Any]:
    """Data of `gpu_rental.expiring` and `expired`: `seconds` are all that were granted."""
    return credited(
        gpu_instance_id=rental.gpu_instance_id,
        quote_id=rental.quote_id,
        signature=rental.signature,
        seconds=rental.seconds,
        expires_at=rental.expires_at,
    )


def unmatched(
    *, signature: str, asset: str, amount: int, reason: str, quote_id: str | None = None
) -> Mapping[str, Any]:
    """Data of `payment.unmatched`: money that waits in suspense, and why."""
    return {
        "signature": signature,
        "asset": asset,
        "amount": str(amount),
        "reason": reason,
        "message": REASONS[reason].words,
        "quote_id": quote_id,
    }
