"""Quotes: what so many seconds of an instance cost, under a reference of their own, and how they are paid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote as percent_encoded

from tempa.core import base58
from tempa.settlement.attribution import memo_for
from tempa.settlement.model import SOL, QuoteStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tempa.settlement.model import TreasuryAccount

AMOUNT_MAX = 2**64 - 1  # of base units: no account holds more
REFERENCE_BYTES = 32


class Price(NamedTuple):
    """Seconds for a base unit, as a fraction in lowest terms."""

    numerator: int
    denominator: int

    @classmethod
    def of(cls, seconds: int, amount: int) -> Self:
        """`amount` base units buy `seconds`; both are above 0."""
        divisor = gcd(seconds, amount)
        return cls(seconds // divisor, amount // divisor)

    def amount_for(self, seconds: int) -> int:
        """The fewest base units that buy `seconds`."""
        return -(-seconds * self.denominator // self.numerator)


@dataclass(frozen=True, slots=True)
class PriceOffer:
    """What an instance costs in one asset: `amount` base units for `seconds`."""

    asset: str
    amount: int
    seconds: int

    @property
    def price(self) -> Price:
        """The same as a rate."""
        return Price.of(self.seconds, self.amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuote:
    """An offer at a locked price. `treasury` is the wallet to pay; `amount` in base units."""

    id: str
    account: str
    gpu_instance_id: str
    asset: str
    decimals: int
    treasury: str
    seconds: int
    amount: int
    price: Price
    reference: str
    created_at: datetime
    expires_at: datetime


class Leg(NamedTuple):
    """How much of a quote was paid at one price, over all payments."""

    price: Price
    paid: int


@dataclass(frozen=True, slots=True)
class Progress:
    """When something was first known of a quote's payment, and in which slot it stands."""

    at: datetime
    slot: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A quote as it stands. `reason` says why money for it waits; `signature` is its latest transaction."""

    offer: NewQuote
    status: QuoteStatus
    legs: tuple[Leg, ...] = ()
    granted_seconds: int = 0
    seen: Progress | None = None
    final: Progress | None = None
    credited: Progress | None = None
    signature: str | None = None
    reason: str | None = None

    @property
    def paid(self) -> int:
        """Base units that were credited to it."""
        return sum(leg.paid for leg in self.legs)


@dataclass(frozen=True, slots=True)
class QuoteSighting:
    """A transaction was heard of that names a quote, by its reference or in its memo.

    `name` is the reference; `quote_id` what a memo says; either may be empty. Nothing is credited by it.
    """

    name: str
    quote_id: str
    slot: int | None
    signature: str
    is_final: bool


class Closed(NamedTuple):
    """No quote was made: `unknown`, `rented` by someone else, or `suspended`."""

    reason: str


def price_in(offers: Iterable[PriceOffer], asset: str) -> Price | None:
    """What an instance costs in this asset; None: it cannot be paid in it."""
    return next((offer.price for offer in offers if offer.asset == asset), None)


def reference_from(random_bytes: bytes) -> str:
    """A reference for one quote: 32 bytes of the system's randomness, so that nobody guesses another's.

    As an address it has no owner: it only labels the transfers that name it.
    """
    assert len(random_bytes) == REFERENCE_BYTES, "a reference is as long as an address"
    return base58.encode(random_bytes)


def new_quote(
    *,
    quote_id: str,
    account: str,
    gpu_instance_id: str,
    seconds: int,
    price: Price,
    treasury: TreasuryAccount,
    reference: str,
    now: datetime,
    lock_seconds: float,
) -> NewQuote:
    """The quote that locks `price` for `lock_seconds`. Its amount may exceed AMOUNT_MAX: refuse it then."""
    return NewQuote(
        id=quote_id,
        account=account,
        gpu_instance_id=gpu_instance_id,
        asset=treasury.asset,
        decimals=treasury.decimals,
        treasury=treasury.owner,
        seconds=seconds,
        amount=price.amount_for(seconds),
        price=price,
        reference=reference,
        created_at=now,
        expires_at=now + timedelta(seconds=lock_seconds),
    )


def decimal_text(amount: int, decimals: int) -> str:
    """Base units as Solana Pay writes them: in user units, no exponent, a leading 0, no idle zeros."""
    whole, rest = divmod(amount, 10**decimals)
    fraction = f"{rest:0{decimals}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


def solana_pay_url(quote: NewQuote, label: str = "Tempa") -> str:
    """The transfer request of a quote (Solana Pay 1.1), for a wallet or as a QR code.

    The recipient is the wallet, never a token account: the payer's wallet derives that.
    """
    token = [] if quote.asset == SOL else [("spl-token", quote.asset)]
    fields = [
        ("amount", decimal_text(quote.amount, quote.decimals)),
        *token,
        ("reference", quote.reference),
        ("label", label),
        ("message", f"{quote.seconds} s of {quote.gpu_instance_id}"),
        ("memo", memo_for(quote.id)),
    ]
    query = "&".join(f"{name}={percent_encoded(value, safe='')}" for name, value in fields)
    return f"solana:{quote.treasury}?{query}"
