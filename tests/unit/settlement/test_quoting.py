"""Making quotes: what can be had is offered at its price, and a refusal says what could be had instead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core import base58
from tempa.core.errors import Refusal
from tempa.core.ids import new_id
from tempa.settlement.model import QuoteStatus, Treasury, TreasuryAccount
from tempa.settlement.quotes import Closed, NewQuote, PriceOffer, Quote
from tempa.settlement.quoting import Quoting, payable
from tempa.settlement.rentals import GRANT_SECONDS_MAX, GpuInstance, Rental
from tempa.settlement.wire import PriceOfInstance
from tempa.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINT, OTHER_MINT = base58.encode(b"\x05" * 32), base58.encode(b"\x06" * 32)
WALLET, TOKEN_ACCOUNT = base58.encode(b"\x09" * 32), base58.encode(b"\x01" * 32)
SOL_ROW = TreasuryAccount(asset="SOL", address=WALLET, owner=WALLET, program=None, decimals=9)
MINT_ROW = TreasuryAccount(asset=MINT, address=TOKEN_ACCOUNT, owner=WALLET, program="T", decimals=6)
TREASURY = Treasury(cluster="c", accounts=(SOL_ROW, MINT_ROW))
PRICES = (PriceOffer("SOL", 10**9, 3_600), PriceOffer(MINT, 7_200, 3_600))
INSTANCE = GpuInstance(
    id=new_id("gpu"), name="H200", prices=PRICES, created_at=NOW, suspended_at=None, rental=None
)


@dataclass
class Shelf:
    """`SettlementStore`, as far as quotes are made."""

    instance_here: GpuInstance = INSTANCE
    closed: str | None = None
    opened: list[NewQuote] = field(default_factory=list)

    async def instance(self, gpu_instance_id: str) -> GpuInstance | None:
        return self.instance_here if gpu_instance_id == self.instance_here.id else None

    async def open_quote(self, new: NewQuote) -> Quote | Closed:
        if self.closed is not None:
            return Closed(self.closed)
        self.opened.append(new)
        return Quote(offer=new, status=QuoteStatus.OPEN)


def quoting(treasury: Callable[[], Treasury | None] | None = lambda: TREASURY, **shelf: Any) -> Quoting:
    async def waited(seconds: float) -> Treasury | None:
        assert seconds > 0
        assert treasury is not None
        return treasury()

    store, known = cast("Any", Shelf(**shelf)), None if treasury is None else waited
    return Quoting(store=store, treasury=known, clock=ManualClock(NOW), lock_seconds=900)


async def refused(making: Quoting, asset: str = MINT, seconds: int = 60) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await making.quote("acme", INSTANCE.id, asset, seconds)
    assert not cast("Shelf", making.store).opened
    return caught.value


async def test_a_quote_asks_the_wallet_at_a_locked_price() -> None:
    quote = await quoting().quote("acme", INSTANCE.id, MINT, 90)

    offer = quote.offer
    assert (offer.account, offer.gpu_instance_id, offer.asset, offer.decimals) == (
        "acme",
        INSTANCE.id,
        MINT,
        6,
    )
    assert (offer.amount, offer.price, offer.treasury) == (180, (1, 2), WALLET)
    assert (offer.created_at, offer.expires_at) == (NOW, NOW + timedelta(seconds=900))


async def test_every_quote_has_a_reference_of_its_own() -> None:
    making = quoting()

    offers = [(await making.quote("acme", INSTANCE.id, MINT, 60)).offer for _ in range(50)]

    assert len({offer.reference for offer in offers}) == 50
    assert len({offer.id for offer in offers}) == 50
    assert all(base58.is_address(offer.reference) for offer in offers)


async def test_the_reference_is_the_one_that_was_minted() -> None:
    making = replace(quoting(), new_reference=lambda: OTHER_MINT)

    assert (await making.quote("acme", INSTANCE.id, MINT, 60)).offer.reference == OTHER_MINT


@given(st.integers(1, 2**40), st.integers(1, 10**7), st.integers(1, 10**7))
async def test_what_is_quoted_buys_no_second_less_than_was_asked_for(
    amount: int, per: int, seconds: int
) -> None:
    instance = replace(INSTANCE, prices=(PriceOffer("SOL", amount, per),))

    offer = (await quoting(instance_here=instance).quote("acme", INSTANCE.id, "SOL", seconds)).offer

    assert offer.amount * per >= seconds * amount > (offer.amount - 1) * per


@pytest.mark.parametrize(
    ("closed", "slug", "status"),
    [
        ("rented", "instance-rented", 409),
        ("suspended", "instance-suspended", 409),
        ("unknown", "not-found", 404),
    ],
)
async def test_an_instance_that_cannot_be_had_is_not_quoted(closed: str, slug: str, status: int) -> None:
    refusal = await refused(quoting(closed=closed))

    assert (refusal.slug, refusal.status) == (slug, status)


@pytest.mark.parametrize("gpu_instance_id", [new_id("gpu"), "", "gpu_", INSTANCE.id.upper(), "x" * 10_000])
async def test_an_unknown_instance_is_not_found(gpu_instance_id: str) -> None:
    with pytest.raises(Refusal) as caught:
        await quoting().quote("acme", gpu_instance_id, MINT, 60)

    assert caught.value.status == 404
    assert len(caught.value.detail) < 200


async def test_an_asset_without_a_price_names_those_with_one() -> None:
    refusal = await refused(quoting(), OTHER_MINT)

    (problem,) = refusal.errors
    assert (refusal.slug, problem.pointer, problem.limit) == ("invalid-request", "/asset", f"SOL, {MINT}")


async def test_an_asset_that_the_treasury_cannot_take_now_is_not_quoted() -> None:
    """Frozen a moment ago: what would come could not be credited."""
    frozen = replace(TREASURY, accounts=(SOL_ROW, replace(MINT_ROW, refusal="account_frozen")))

    refusal = await refused(quoting(lambda: frozen))

    assert [(problem.pointer, problem.limit) for problem in refusal.errors] == [("/asset", "SOL")]
    assert payable(PRICES, frozen) == ("SOL",)


async def test_an_asset_with_a_price_but_no_account_of_the_treasury_is_not_quoted() -> None:
    refusal = await refused(quoting(lambda: replace(TREASURY, accounts=(SOL_ROW,))))

    assert refusal.errors[0].limit == "SOL"


async def test_the_treasury_is_asked_each_time() -> None:
    views = iter([TREASURY, replace(TREASURY, accounts=())])
    making = quoting(lambda: next(views))

    await making.quote("acme", INSTANCE.id, MINT, 60)
    with pytest.raises(Refusal):
        await making.quote("acme", INSTANCE.id, MINT, 60)


async def test_without_a_treasury_the_settings_to_make_are_named() -> None:
    refusal = await refused(quoting(None))

    assert (refusal.slug, refusal.status) == ("payments-not-configured", 501)
    assert "solana.treasury" in refusal.detail
    assert "solana.rpc_urls" in refusal.detail


async def test_a_treasury_that_is_not_known_yet_is_asked_for_later() -> None:
    refusal = await refused(quoting(lambda: None))

    assert (refusal.slug, refusal.status) == ("treasury-unknown", 503)
    assert int(refusal.headers["Retry-After"]) > 0


async def test_an_amount_beyond_all_accounts_names_the_longest_time_that_can_be_had() -> None:
    """Of 2**64 - 1 base units, at 2**53 - 1 for 7 s: 2**11 times 7 s, and nothing of the next second."""
    making = quoting(instance_here=replace(INSTANCE, prices=(PriceOffer(MINT, 2**53 - 1, 7),)))

    (problem,) = (await refused(making, seconds=14_337)).errors

    assert (problem.pointer, problem.limit) == ("/seconds", 14_336)
    assert (await making.quote("acme", INSTANCE.id, MINT, 14_336)).offer.amount == 2**64 - 2**11


async def test_less_than_counts_as_a_payment_names_the_least_that_does() -> None:
    """Two base units a second, and what is below 101 waits for a person: 51 s are 102."""
    making = quoting(lambda: replace(TREASURY, dust={MINT: 101}))

    (problem,) = (await refused(making, seconds=50)).errors

    assert (problem.pointer, problem.limit) == ("/seconds", 51)
    assert (await making.quote("acme", INSTANCE.id, MINT, 51)).offer.amount == 102


async def test_a_rental_is_not_quoted_beyond_what_it_may_last() -> None:
    """It has ten days left: a payment for so much more would wait for a person."""
    rental = Rental(
        gpu_instance_id=INSTANCE.id,
        account="acme",
        started_at=NOW,
        expires_at=NOW + timedelta(days=10),
        seconds=864_000,
        is_in_grace=False,
        quote_id="quo_1",
        signature="s",
    )
    most = GRANT_SECONDS_MAX - 864_000
    making = quoting(instance_here=replace(INSTANCE, rental=rental))

    (problem,) = (await refused(making, seconds=most + 1)).errors

    assert (problem.pointer, problem.limit) == ("/seconds", most)
    assert (await making.quote("acme", INSTANCE.id, MINT, most)).offer.seconds == most
    ended = quoting(instance_here=replace(INSTANCE, rental=replace(rental, ended_at=NOW)))
    assert (await ended.quote("acme", INSTANCE.id, MINT, GRANT_SECONDS_MAX)).offer.seconds > most


@pytest.mark.parametrize("seconds", [0, -1, GRANT_SECONDS_MAX + 1])
async def test_no_time_is_not_quoted(seconds: int) -> None:
    (problem,) = (await refused(quoting(), seconds=seconds)).errors

    assert (problem.pointer, problem.limit) == ("/seconds", GRANT_SECONDS_MAX)


async def test_what_can_be_paid_in_is_told_in_the_order_of_the_prices() -> None:
    assert await quoting().assets(INSTANCE.id) == ("SOL", MINT)
    with pytest.raises(Refusal, match=r"solana\.treasury"):
        await quoting(None).assets(INSTANCE.id)


def asked(*assets: str) -> list[PriceOfInstance]:
    return [PriceOfInstance(asset=asset, amount="9007199254740991", seconds=7) for asset in assets]


async def test_a_price_in_what_the_treasury_does_not_take_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        await quoting().offers(asked("SOL", OTHER_MINT))

    assert [(one.pointer, one.limit) for one in caught.value.errors] == [("/prices/1/asset", f"SOL, {MINT}")]


@pytest.mark.parametrize(
    "treasury",
    [
        pytest.param(None, id="no payments here"),
        pytest.param(lambda: None, id="not known yet"),
        pytest.param(
            lambda: replace(TREASURY, accounts=(replace(MINT_ROW, refusal="account_frozen"),)), id="frozen"
        ),
    ],
)
async def test_a_price_is_kept_whatever_the_treasury_can_take_today(treasury: Any) -> None:
    assert await quoting(treasury).offers(asked(MINT)) == (PriceOffer(MINT, 2**53 - 1, 7),)
