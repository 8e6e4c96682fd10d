"""What a receipt is worth: whose it is, at which price, for how many seconds. Decisions only, no I/O.

Seconds come from all that a quote was paid, never from one payment: rounding each down lost 26 % over 1,000
small payments (measured). What is left of a second stays with the quote.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from tempa.core.clock import to_ms
from tempa.settlement.attribution import attribute
from tempa.settlement.journal import FEES, OUTSIDE, UNALLOCATED, Posting, customer_account, treasury_account
from tempa.settlement.model import Attribution, Invoice, QuoteStatus
from tempa.settlement.quotes import Leg
from tempa.settlement.rentals import GRANT_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from tempa.settlement.model import Outflow, Receipt, Verdict
    from tempa.settlement.quotes import Price, Quote

LOCK_TOLERANCE_SECONDS = 60
"""A block's time is its validators' estimate: a payment so much behind the quote's end is still in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The operator's.

    - `operator`: the account that is told of payments that are nobody's.
    - `dust`: by asset, what is less waits in suspense.
    - `lock_tolerance_seconds`: how late a payment may be and still have its quote's price.
    """

    operator: str
    dust: Mapping[str, int] = field(default_factory=dict)
    lock_tolerance_seconds: int = LOCK_TOLERANCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """What the chain shows of one transaction, for good. `evidence`: what each node answered."""

    verdict: Verdict
    terms: Terms
    evidence: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A part of a receipt that was given to a quote. `seconds`: granted for it, beyond those before.

    `expires_at`: when the rental ended then; None where it bought no whole second. `price`: at which it was
    taken; None where that was not kept yet.
    """

    quote_id: str
    account: str
    gpu_instance_id: str
    amount: int
    seconds: int
    expires_at: datetime | None
    at: datetime
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A receipt as it stands in the ledger. What `allocations` do not sum up to waits in suspense."""

    number: int
    receipt: Receipt
    evidence: Sequence[Mapping[str, Any]]
    posted_at: datetime
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One credit, as statements show it. `number` is where a page goes on."""

    number: int
    signature: str
    slot: int
    block_time: int | None
    payer: str | None
    asset: str
    allocation: Allocation


class LedgerEnds(NamedTuple):
    """The highest number of a receipt, and of an entry of the journal; 0 where there is none."""

    receipt: int
    entry: int


@dataclass(frozen=True, slots=True)
class QuotePayment:
    """A part of a receipt that was given to a quote, in the order in which that happened."""

    number: int
    receipt: int  # its number
    amount: int
    seconds: int
    price: Price


class Flows(NamedTuple):
    """What came into an account of the treasury and what left it, by the ledger. Base units."""

    received: int = 0
    sent: int = 0


class Posted(NamedTuple):
    """What posting wrote; all 0 of what was in the ledger already."""

    receipts: int = 0
    credits: int = 0  # shares that were given to their quotes
    suspended: int = 0  # shares, receipts and strays that wait for a person


def attribution_of(receipt: Receipt, quotes: Iterable[Quote], terms: Terms) -> Attribution:
    """To which of `quotes` a receipt belongs, or why it waits."""
    if receipt.amount < terms.dust.get(receipt.asset, 0):
        return Attribution(reason="dust")
    invoices = [Invoice(each.offer.id, each.offer.reference, each.offer.asset) for each in quotes]
    return attribute(receipt, invoices)


def is_late(receipt: Receipt, quote: Quote, now: datetime, terms: Terms) -> bool:
    """Whether the price lock was over in the payment's block; at `now`, where the chain has no time of it."""
    paid_at = to_ms(now) // 1000 if receipt.block_time is None else receipt.block_time
    return paid_at > to_ms(quote.offer.expires_at) // 1000 + terms.lock_tolerance_seconds


def entitled_seconds(legs: Collection[Leg]) -> int:
    """What all payments of a quote buy together, in whole seconds."""
    return int(sum((leg.paid * Fraction(*leg.price) for leg in legs), Fraction()))


def with_payment(legs: Sequence[Leg], price: Price, amount: int) -> tuple[Leg, ...]:
    """The legs of a quote that was paid `amount` more at `price`."""
    paid = {leg.price: leg.paid for leg in legs}
    paid[price] = paid.get(price, 0) + amount
    return tuple(Leg(at, total) for at, total in paid.items())


@dataclass(frozen=True, slots=True)
class Credit:
    """A share of a receipt that its quote may take: `seconds` more at `price`; the quote as it is then."""

    quote: Quote
    seconds: int
    price: Price


def credit(quote: Quote, amount: int, price: Price | None, *, late: bool) -> Credit | str:
    """What `amount` buys; a code of `reasons` if it has to wait.

    `price` is the instance's at the payment's time: a late one is credited at it, one in time at the quote's.
    """
    rate = price if late else quote.offer.price
    if rate is None:
        return "price_withdrawn"
    legs = with_payment(quote.legs, rate, amount)
    entitled = entitled_seconds(legs)
    if entitled > GRANT_SECONDS_MAX:
        return "rental_too_long"
    paid = replace(quote, legs=legs, granted_seconds=entitled, reason=None)
    return Credit(replace(paid, status=_status(paid, late=late)), entitled - quote.granted_seconds, rate)


def _status(quote: Quote, *, late: bool) -> QuoteStatus:
    if late or quote.status is QuoteStatus.LATE:
        return QuoteStatus.LATE
    return QuoteStatus.CREDITED if quote.paid >= quote.offer.amount else QuoteStatus.PARTIAL


def released_status(quote: Quote) -> QuoteStatus:
    """Of a quote for which no money waits any more."""
    return _status(replace(quote, status=QuoteStatus.OPEN), late=False) if quote.legs else QuoteStatus.OPEN


def not_to_be_had(account: str, renter: str | None, seconds: int, *, is_suspended: bool) -> str | None:
    """Why an account's rental was not prolonged by `seconds`; None: there were none to prolong it by."""
    if is_suspended:
        return "instance_suspended"
    if renter not in (None, account):
        return "instance_rented"
    return "rental_too_long" if seconds else None


def extended(expires_at: datetime | None, now: datetime, seconds: int) -> datetime:
    """When a rental ends that was prolonged: from its end on, or from `now` if that is over or never was."""
    begin = now if expires_at is None else max(now, expires_at)
    return begin + timedelta(seconds=seconds)


class Given(NamedTuple):
    """A part of a receipt that was given to an account."""

    account: str
    amount: int


def receipt_postings(receipt: Receipt, given: Sequence[Given]) -> tuple[Posting, ...]:
    """Money came in: some of it is owed to customers, the rest is nobody's yet."""
    rest = receipt.amount - sum(part.amount for part in given)
    owed = [Posting(customer_account(part.account), receipt.asset, -part.amount) for part in given]
    unallocated = [Posting(UNALLOCATED, receipt.asset, -rest)] if rest else []
    return (Posting(treasury_account(receipt.asset), receipt.asset, receipt.amount), *owed, *unallocated)


def allocation_postings(asset: str, given: Given) -> tuple[Posting, ...]:
    """Money that waited in suspense has found its owner."""
    return (
        Posting(UNALLOCATED, asset, given.amount),
        Posting(customer_account(given.account), asset, -given.amount),
    )


def outflow_postings(outflow: Outflow) -> tuple[Posting, ...]:
    """Money left the treasury."""
    where = FEES if outflow.kind == "fee" else OUTSIDE
    return (
        Posting(where, outflow.asset, outflow.amount),
        Posting(treasury_account(outflow.asset), outflow.asset, -outflow.amount),
    )


def receipt_key(receipt: Receipt) -> str:
    """Once in the ledger, by this."""
    return f"receipt:{receipt.cluster}:{receipt.signature}:{receipt.asset}:{receipt.account}"


def share_key(receipt: Receipt, quote_id: str) -> str:
    """Of the entry that gives a quote its share of a receipt that several accounts have a share of."""
    return f"share:{receipt_key(receipt)}:{quote_id}"


def receipt_detail(receipt: Receipt) -> dict[str, Any]:
    """What each entry about a receipt says of it."""
    return {"signature": receipt.signature, "slot": receipt.slot, "account": receipt.account}


def given_detail(receipt: Receipt, quote_id: str, amount: int, seconds: int) -> dict[str, Any]:
    """What an entry says that gives a part of a receipt to a quote."""
    return {
        **receipt_detail(receipt),
        "quote_id": quote_id,
        "amount": str(amount),
        "seconds": seconds,
    }


def outflow_key(outflow: Outflow) -> str:
    """Once in the ledger, by this."""
    return f"outflow:{outflow.cluster}:{outflow.signature}:{outflow.asset}:{outflow.account}:{outflow.kind}"
