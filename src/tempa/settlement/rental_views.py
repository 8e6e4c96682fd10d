"""What may be seen of instances and quotes, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.settlement.model import QuoteStatus
from tempa.settlement.quotes import solana_pay_url
from tempa.settlement.reasons import REASONS
from tempa.settlement.wire import ANOTHER_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.settlement.quotes import Progress, Quote
    from tempa.settlement.rentals import GpuInstance

QUOTE_WORDS: Mapping[QuoteStatus, str] = {
    QuoteStatus.OPEN: "No payment was heard of yet. It has this price until expires_at.",
    QuoteStatus.SEEN: "A payment was heard of. It becomes time once it is final.",
    QuoteStatus.FINAL: "The payment is final, and is being booked.",
    QuoteStatus.CREDITED: "It was paid, and became time.",
    QuoteStatus.PARTIAL: "Less came than was asked for, and became the time it buys. The rest may follow.",
    QuoteStatus.LATE: "It was paid after expires_at, and became time at the price of then.",
    QuoteStatus.SUSPENSE: "Money for it waits for the operator to look at it.",
    QuoteStatus.EXPIRED: "No payment was heard of before expires_at. Ask for a new quote. What is still paid"
    " to this one buys time at the price of then.",
}


def instance_view(instance: GpuInstance, now: datetime, account: str, *, is_operator: bool) -> dict[str, Any]:
    """An instance at `now`, as `account` sees it."""
    rental, renter = instance.rental, instance.renter
    is_shown = is_operator or renter in (None, account)
    return {
        "id": instance.id,
        "name": instance.name,
        "status": str(instance.status(now)),
        "current_expiry": None if rental is None else rfc3339(rental.expires_at),
        "renter": renter if is_shown else ANOTHER_ACCOUNT,
        "prices": [
            {"asset": price.asset, "amount": str(price.amount), "seconds": price.seconds}
            for price in instance.prices
        ],
        "created_at": rfc3339(instance.created_at),
        "suspended_at": None if instance.suspended_at is None else rfc3339(instance.suspended_at),
    }


def quote_view(quote: Quote) -> dict[str, Any]:
    """A quote, how to pay it, and how far its payment is."""
    offer = quote.offer
    return {
        "quote_id": offer.id,
        "gpu_instance_id": offer.gpu_instance_id,
        "asset": offer.asset,
        "decimals": offer.decimals,
        "seconds": offer.seconds,
        "amount": str(offer.amount),
        "price": {"numerator": offer.price.numerator, "denominator": offer.price.denominator},
        "treasury": offer.treasury,
        "reference": offer.reference,
        "solana_pay_url": solana_pay_url(offer),
        "status": str(quote.status),
        "created_at": rfc3339(offer.created_at),
        "expires_at": rfc3339(offer.expires_at),
        "seen": _progress(quote.seen),
        "final": _progress(quote.final),
        "credited": _progress(quote.credited),
        "signature": quote.signature,
        "paid": str(quote.paid),
        "granted_seconds": quote.granted_seconds,
        "reason": quote.reason,
        "message": QUOTE_WORDS[quote.status] if quote.reason is None else REASONS[quote.reason].words,
    }


def _progress(progress: Progress | None) -> dict[str, Any] | None:
    return None if progress is None else {"at": rfc3339(progress.at), "slot": progress.slot}
