"""Quotes: what seconds cost, the label that nobody guesses, and the URL that a wallet reads."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core import base58
from tempa.settlement.model import TreasuryAccount
from tempa.settlement.quotes import (
    NewQuote,
    Price,
    PriceOffer,
    decimal_text,
    new_quote,
    price_in,
    reference_from,
    solana_pay_url,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINT = base58.encode(b"\x05" * 32)
WALLET = base58.encode(b"\x09" * 32)
ASSETS = {
    "SOL": TreasuryAccount(asset="SOL", address=WALLET, owner=WALLET, program=None, decimals=9),
    MINT: TreasuryAccount(
        asset=MINT, address=base58.encode(b"\x01" * 32), owner=WALLET, program="T", decimals=6
    ),
}


def a_quote(asset: str = MINT, seconds: int = 3_600, price: Price = Price(1, 2)) -> NewQuote:  # noqa: B008
    return new_quote(
        quote_id="quo_1",
        account="acme",
        gpu_instance_id="gpu_é 1",
        seconds=seconds,
        price=price,
        treasury=ASSETS[asset],
        reference=reference_from(b"\x02" * 32),
        now=NOW,
        lock_seconds=900,
    )


@given(st.integers(1, 10**9), st.integers(1, 2**64 - 1), st.integers(1, 10**8))
def test_an_amount_is_the_least_that_buys_the_seconds(per: int, amount: int, seconds: int) -> None:
    price = Price.of(per, amount)
    asked = price.amount_for(seconds)

    assert asked * per // amount >= seconds
    assert (asked - 1) * per // amount < seconds
    assert price.numerator * amount == price.denominator * per


def test_a_price_is_looked_up_by_asset() -> None:
    offers = [PriceOffer("SOL", 10**9, 3_600), PriceOffer(MINT, 2_500_000, 3_600)]

    assert price_in(offers, MINT) == Price(9, 6_250)
    assert price_in(offers, "other") is None


def test_a_quote_asks_the_wallet_for_the_price_of_its_seconds() -> None:
    quote = a_quote(seconds=5, price=Price(2, 3))

    assert (quote.amount, quote.treasury, quote.decimals) == (8, WALLET, 6)
    assert quote.expires_at == NOW + timedelta(seconds=900)


def test_a_reference_is_an_address_that_nobody_guesses() -> None:
    """All 32 bytes are the randomness that was given, in order."""
    random_bytes = os.urandom(32)

    assert base58.is_address(reference_from(random_bytes))
    assert base58.decode(reference_from(random_bytes)) == random_bytes
    with pytest.raises(AssertionError):
        reference_from(random_bytes[:16])


@pytest.mark.parametrize(
    ("amount", "decimals", "text"),
    [
        (1, 9, "0.000000001"),
        (10**9, 9, "1"),
        (1_500_000, 6, "1.5"),
        (100, 6, "0.0001"),
        (10_000_000, 6, "10"),
        (2**64 - 1, 9, "18446744073.709551615"),
        (2**64 - 1, 0, "18446744073709551615"),
        (70, 0, "70"),
        (0, 6, "0"),
        (5, 1, "0.5"),
        (1, 19, "0.0000000000000000001"),
    ],
)
def test_amounts_are_spelt_as_wallets_read_them(amount: int, decimals: int, text: str) -> None:
    assert decimal_text(amount, decimals) == text


@given(st.integers(0, 2**64 - 1), st.integers(0, 19))
def test_an_amounts_text_is_its_exact_value(amount: int, decimals: int) -> None:
    text = decimal_text(amount, decimals)

    assert Decimal(text) == Decimal(amount).scaleb(-decimals)
    assert "e" not in text.lower()
    assert len(text.partition(".")[2]) <= decimals
    assert not text.startswith(".")


@pytest.mark.parametrize("asset", sorted(ASSETS))
def test_the_url_names_wallet_amount_token_reference_and_memo(asset: str) -> None:
    quote = a_quote(asset)
    url = urlsplit(solana_pay_url(quote, label="Tempa & Söhne"))
    fields = parse_qs(url.query, strict_parsing=True)

    assert (url.scheme, url.path) == ("solana", WALLET)
    assert fields == {
        "amount": [decimal_text(7_200, quote.decimals)],
        **({} if asset == "SOL" else {"spl-token": [MINT]}),
        "reference": [quote.reference],
        "label": ["Tempa & Söhne"],
        "message": ["3600 s of gpu_é 1"],
        "memo": ["tempa:quo_1"],
    }
    assert "+" not in url.query, "a blank is %20: wallets take + for itself"
