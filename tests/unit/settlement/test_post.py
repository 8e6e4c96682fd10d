"""What a payment is worth, against plain reckoning: parts, order, lateness, dust, and the journal's lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.settlement.journal import UNALLOCATED, is_balanced
from tempa.settlement.model import Outflow, QuoteStatus, Receipt
from tempa.settlement.post import (
    Credit,
    Given,
    Terms,
    allocation_postings,
    attribution_of,
    credit,
    extended,
    is_late,
    not_to_be_had,
    outflow_postings,
    receipt_postings,
)
from tempa.settlement.quotes import NewQuote, Price, Quote
from tempa.settlement.rentals import GRANT_SECONDS_MAX

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TERMS = Terms(operator="ops", dust={"MINT": 10})

amounts = st.integers(1, 2**64 - 1)
prices = st.builds(Price.of, st.integers(1, 1_000), st.integers(1, 2**64 - 1))
small_amounts = st.integers(1, 10**5)


def a_quote(price: Price, amount: int = 100) -> Quote:
    offer = NewQuote(
        id="quo_1",
        account="acme",
        gpu_instance_id="gpu_1",
        asset="MINT",
        decimals=6,
        treasury="W",
        seconds=1,
        amount=amount,
        price=price,
        reference="R",
        created_at=NOW - timedelta(minutes=15),
        expires_at=NOW,
    )
    return Quote(offer=offer, status=QuoteStatus.OPEN)


def a_receipt(amount: int = 100, **changes: object) -> Receipt:
    receipt = Receipt(
        cluster="C",
        signature="S",
        asset="MINT",
        account="A",
        amount=amount,
        slot=1,
        index=0,
        block_time=int(NOW.timestamp()),
        payer=None,
        references=("R",),
    )
    return replace(receipt, **changes)  # type: ignore[arg-type]


def paid(quote: Quote, amount: int, price: Price | None = None, *, late: bool = False) -> Credit:
    bought = credit(quote, amount, price, late=late)
    assert isinstance(bought, Credit)
    return bought


@given(st.lists(small_amounts, min_size=1, max_size=40), st.randoms(use_true_random=False), prices)
def test_any_split_in_any_order_buys_what_the_sum_buys(parts: list[int], luck: object, price: Price) -> None:
    luck.shuffle(parts)  # type: ignore[attr-defined]
    quote, seconds = a_quote(price), 0
    for part in parts:
        bought = paid(quote, part)
        quote, seconds = bought.quote, seconds + bought.seconds

    total = sum(parts)
    assert seconds == quote.granted_seconds == total * price.numerator // price.denominator
    assert quote.paid == total


@given(
    st.lists(st.tuples(small_amounts, st.booleans()), min_size=1, max_size=20),
    st.lists(prices, min_size=1, max_size=4),
    prices,
)
def test_late_parts_at_other_prices_carry_their_rest_too(
    parts: list[tuple[int, bool]], present: list[Price], locked: Price
) -> None:
    quote, seconds, owed = a_quote(locked), 0, Fraction()
    for place, (part, late) in enumerate(parts):
        price = present[place % len(present)]
        bought = paid(quote, part, price, late=late)
        quote, seconds = bought.quote, seconds + bought.seconds
        rate = price if late else locked
        owed += Fraction(part * rate.numerator, rate.denominator)
        assert bought.seconds >= 0

    assert seconds == owed.numerator // owed.denominator
    assert quote.paid == sum(part for part, _ in parts)


def test_a_thousand_small_payments_lose_nothing() -> None:
    """Each rounded down by itself they would buy 1,000 of 1,500 seconds."""
    quote = a_quote(Price(3, 2))
    for _ in range(1_000):
        quote = paid(quote, 1).quote

    assert quote.granted_seconds == 1_500


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([99], QuoteStatus.PARTIAL),
        ([99, 1], QuoteStatus.CREDITED),
        ([100], QuoteStatus.CREDITED),
        ([101], QuoteStatus.CREDITED),
        ([1], QuoteStatus.PARTIAL),
    ],
)
def test_a_quote_is_credited_when_all_of_it_is_there(parts: list[int], status: QuoteStatus) -> None:
    quote = a_quote(Price(1, 1))
    for part in parts:
        quote = paid(quote, part).quote

    assert quote.status is status


def test_what_came_late_stays_late() -> None:
    quote = paid(a_quote(Price(1, 1)), 50, Price(1, 2), late=True).quote
    assert (quote.status, quote.granted_seconds) == (QuoteStatus.LATE, 25)

    assert paid(quote, 500).quote.status is QuoteStatus.LATE


def test_what_cannot_be_priced_or_used_waits() -> None:
    assert credit(a_quote(Price(1, 1)), 50, None, late=True) == "price_withdrawn"
    assert isinstance(credit(a_quote(Price(1, 1)), 50, None, late=False), Credit)
    assert credit(a_quote(Price(1, 1)), GRANT_SECONDS_MAX + 1, None, late=False) == "rental_too_long"
    assert isinstance(credit(a_quote(Price(1, 1)), GRANT_SECONDS_MAX, None, late=False), Credit)


@pytest.mark.parametrize(
    ("offset", "late"), [(-1, False), (0, False), (60, False), (61, True), (10**12, True)]
)
def test_lateness_goes_by_the_blocks_time_with_its_tolerance(offset: int, late: bool) -> None:  # noqa: FBT001
    receipt = a_receipt(block_time=int(NOW.timestamp()) + offset)

    assert is_late(receipt, a_quote(Price(1, 1)), NOW + timedelta(days=9), TERMS) is late


def test_without_a_blocks_time_it_goes_by_now() -> None:
    receipt, quote = a_receipt(block_time=None), a_quote(Price(1, 1))

    assert not is_late(receipt, quote, NOW + timedelta(seconds=60), TERMS)
    assert is_late(receipt, quote, NOW + timedelta(seconds=61), TERMS)


def test_dust_is_what_lies_below_the_floor_of_its_asset() -> None:
    quotes = [a_quote(Price(1, 1))]

    assert attribution_of(a_receipt(9), quotes, TERMS).reason == "dust"
    assert attribution_of(a_receipt(10), quotes, TERMS).shares[0].quote_id == "quo_1"
    assert attribution_of(a_receipt(9), quotes, Terms(operator="ops")).reason is None


@pytest.mark.parametrize(
    ("renter", "seconds", "suspended", "reason"),
    [
        (None, 0, False, None),
        ("acme", 0, False, None),
        ("globex", 0, False, "instance_rented"),
        ("globex", 9, False, "instance_rented"),
        ("acme", 9, True, "instance_suspended"),
        ("globex", 9, True, "instance_suspended"),
        ("acme", 9, False, "rental_too_long"),
    ],
)
def test_why_an_instance_is_not_to_be_had(
    renter: str | None,
    seconds: int,
    suspended: bool,  # noqa: FBT001
    reason: str | None,
) -> None:
    assert not_to_be_had("acme", renter, seconds, is_suspended=suspended) == reason


def test_a_rental_goes_on_from_its_end_or_from_now() -> None:
    later = NOW + timedelta(seconds=30)

    assert extended(None, NOW, 10) == NOW + timedelta(seconds=10)
    assert extended(later, NOW, 10) == later + timedelta(seconds=10)
    assert extended(NOW - timedelta(hours=3), NOW, 10) == NOW + timedelta(seconds=10)


@given(st.lists(amounts, max_size=5), st.integers(0, 2**64))
def test_a_receipts_lines_sum_to_zero_and_keep_the_rest_in_suspense(parts: list[int], rest: int) -> None:
    total = sum(parts) + rest
    lines = receipt_postings(a_receipt(total), [Given(f"a{place}", part) for place, part in enumerate(parts)])

    assert is_balanced(lines)
    assert sum(-line.amount for line in lines if line.account == UNALLOCATED) == rest
    assert lines[0].amount == total


@pytest.mark.parametrize(("kind", "where"), [("fee", "expense:fees"), ("transfer", "chain:outside")])
def test_other_entries_sum_to_zero_too(kind: str, where: str) -> None:
    outflow = Outflow(
        cluster="C",
        signature="S",
        asset="SOL",
        account="A",
        kind=kind,
        amount=2**64 - 1,
        slot=1,
        index=None,
        block_time=None,
    )

    assert is_balanced(outflow_postings(outflow))
    assert outflow_postings(outflow)[0].account == where
    assert is_balanced(allocation_postings("MINT", Given("acme", 7)))
