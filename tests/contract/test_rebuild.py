"""A ledger built anew from chain, quotes and acts is the same, and what is not the same is told."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.ids import new_id
from tempa.settlement.journal import UNALLOCATED
from tempa.settlement.model import QuoteStatus
from tempa.settlement.ports import Sighting
from tempa.settlement.post import Terms
from tempa.settlement.quorum import Agreed, Held
from tempa.settlement.quotes import NewQuote, PriceOffer
from tempa.settlement.rebuild import Order, Progress, Rebuild, Rebuilt, ReplayClock
from tempa.settlement.refunds import NewRefund, Outcome, Signed
from tempa.settlement.verify import verify
from tests.contract.shop import HOUR, LOCK_SECONDS, TERMS, TREASURY, USD, WALLET, Shop
from tests.contract.test_stores import MEMORY, folder, on_postgres, on_sqlite  # noqa: F401 - a fixture

GRACE_SECONDS = 600.0
LATE_SECONDS = LOCK_SECONDS + TERMS.lock_tolerance_seconds + 1


@pytest.fixture(params=[on_sqlite, on_postgres], ids=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    async with request.param(request) as bench:
        yield Shop(bench)


@pytest.fixture
async def lite(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:  # noqa: F811
    async with on_sqlite(request) as bench:
        yield Shop(bench)


@dataclass
class Nodes:
    """What the shop's chain shows. `hidden` are in no account's history, `unknown` to no node."""

    shop: Shop
    hidden: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)

    async def history(self) -> AsyncIterator[Sighting]:
        """Newest first, and the last page twice."""
        shown = [each for each in reversed(self.shop.chain) if each not in self.hidden]
        for signature in shown + shown[-3:]:
            answer = self.shop.chain[signature]
            yield Sighting(signature, answer["slot"], answer["meta"]["err"] is not None, answer["blockTime"])

    async def check(self, signature: str) -> Agreed | Held:
        if signature in self.unknown:
            return Held("not_found_yet")
        return Agreed(verify(self.shop.chain[signature], TREASURY, signature), ())


async def rebuilt(
    shop: Shop, order: Order = Order.POSTED, nodes: Nodes | None = None, terms: Terms = TERMS, **how: Any
) -> Rebuilt:
    nodes = nodes or Nodes(shop)
    clock = ReplayClock()
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        scratch = await SqliteStore.open(Path(name) / "scratch.db", clock=clock, wake=InProcessWake(clock))
        try:
            return await Rebuild(
                source=shop.bench.store,
                scratch=scratch,
                clock=clock,
                sightings=nodes.history(),
                check=nodes.check,
                terms=terms,
                grace_seconds=GRACE_SECONDS,
                order=order,
                **how,
            ).run()
        finally:
            await scratch.close()


def words(done: Rebuilt) -> list[str]:
    return [f"{one.what} {one.key}: {one.words}" for one in done.comparison.differences]


async def identical(shop: Shop, order: Order) -> Rebuilt:
    done = await rebuilt(shop, order)
    assert done.is_identical, (words(done), done.undone, done.unchecked)
    assert done.comparison.root == done.comparison.other_root
    return done


@pytest.mark.parametrize("order", Order)
async def test_a_ledger_built_anew_is_the_same(shop: Shop, order: Order) -> None:
    """Payments in parts, two assets' worth of rounding, nobody's money, and what a person gave."""
    gpu, other = await shop.instance(), await shop.instance(PriceOffer(USD, 3, 1))
    mine = await shop.quote(gpu)
    theirs = await shop.quote(other, account="globex", price=PriceOffer(USD, 3, 1).price)
    for amount in (601, 1_001, 33):
        await shop.pays(amount, mine)
        await shop.pays(amount, theirs)
        shop.bench.clock.advance(7)
    await shop.pays(5)  # dust
    await shop.pays(500)
    anomaly = next(one for one in await shop.bench.store.anomalies(10, None) if one.amount == 500)
    shop.bench.clock.advance(60)
    await shop.bench.store.resolve_anomaly(anomaly.id, "Ana called", TERMS, theirs.id)

    done = await identical(shop, order)

    assert (done.transactions, done.comparison.receipts, done.comparison.quotes) == (8, 8, 2)


@pytest.mark.parametrize("order", Order)
async def test_late_payments_have_the_price_of_their_time_however_late_we_came_to_them(
    shop: Shop, order: Order
) -> None:
    gpu = await shop.instance()
    quote = await shop.quote(gpu)
    await shop.pays(7_200, quote)
    shop.bench.clock.advance(LATE_SECONDS)
    await shop.bench.store.change_prices(gpu, [PriceOffer(USD, 14_400, 3_600)])
    shop.bench.clock.advance(10)
    unheard = [shop.lands(1_000 + part, quote) for part in range(3)]
    shop.bench.clock.advance(10)
    await shop.bench.store.change_prices(gpu, [PriceOffer(USD, 72_000, 3_600)])
    shop.bench.clock.advance(10)
    await shop.pays(7_200, quote)
    for signature in reversed(unheard):
        await shop.post(signature)

    await identical(shop, order)

    shown = await shop.bench.store.quote("acme", quote.id)
    assert shown is not None
    # 3,600 s in time, 3,003 base units at 4 a second, 7,200 at 20 a second.
    assert shown.granted_seconds == int(3_600 + 3_003 / 4 + 7_200 / 20)


async def test_who_came_first_by_our_books_has_the_instance_again(shop: Shop) -> None:
    """A payment that no channel told of lands before another's, is posted behind it, and waits."""
    gpu = await shop.instance()
    ours, theirs = await shop.quote(gpu), await shop.quote(gpu, account="globex")
    unheard = shop.lands(7_200, ours)
    shop.bench.clock.advance(30)
    await shop.pays(7_200, theirs)
    await shop.post(unheard)

    await identical(shop, Order.POSTED)
    done = await rebuilt(shop, Order.CHAIN)

    assert {one.key for one in done.comparison.differences if one.what == "quote"} == {ours.id, theirs.id}
    assert done.comparison.root == done.comparison.other_root  # receipts do not depend on it


async def test_suspensions_and_what_was_driven_again_behind_them_are_done_again(shop: Shop) -> None:
    gpu = await shop.instance()
    first, second = await shop.quote(gpu), await shop.quote(gpu)
    await shop.bench.store.suspend_instance(gpu)
    await shop.pays(7_200, first)
    both = shop.lands(0, first, second)
    shop.chain[both] = two_parts(shop.chain[both], first, second)
    await shop.post(both)
    assert len(await shop.bench.store.anomalies(10, None)) == 3
    await shop.bench.store.resume_instance(gpu)
    for anomaly in await shop.bench.store.anomalies(10, None):
        await shop.bench.store.redrive_anomaly(anomaly.id, TERMS)
    await shop.pays(120, second)

    await identical(shop, Order.POSTED)

    assert (await shop.bench.store.balances())[UNALLOCATED, USD] == 0


def two_parts(answer: dict[str, Any], first: NewQuote, second: NewQuote) -> dict[str, Any]:
    from tests.unit.settlement.verify_samples import paid, transfer

    moves = (transfer(120, first.reference), transfer(60, second.reference))
    made = paid(180, keys=(first.reference, second.reference), instructions=moves)
    made["transaction"]["signatures"] = answer["transaction"]["signatures"]
    return {**made, "slot": answer["slot"], "blockTime": answer["blockTime"]}


@pytest.mark.parametrize("order", Order)
async def test_what_two_accounts_paid_at_once_is_given_to_both_again(lite: Shop, order: Order) -> None:
    """Each share has an entry of its own, and is not an operator's act."""
    mine = await lite.quote(await lite.instance())
    theirs = await lite.quote(await lite.instance(), account="globex")
    signature = lite.lands(0, mine, theirs)
    lite.chain[signature] = two_parts(lite.chain[signature], mine, theirs)
    assert (await lite.post(signature)).credits == 2
    assert [entry.draft.kind for entry in await lite.bench.store.journal(0, 10)] == [
        "receipt",
        "share",
        "share",
    ]

    assert (await identical(lite, order)).undone == ()


async def test_dust_that_was_driven_again_by_other_terms_is_given_again(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance())
    await lite.pays(8, quote)
    (anomaly,) = await lite.bench.store.anomalies(10, None)
    await lite.bench.store.redrive_anomaly(anomaly.id, Terms(operator="operator"))

    await identical(lite, Order.POSTED)


async def test_refunds_are_done_again(lite: Shop) -> None:
    """One that arrived, one that failed and was given to a quote, one that is under way."""
    store = lite.bench.store
    quote = await lite.quote(await lite.instance())
    refunds = []
    for amount in (500, 600, 700):
        await lite.pays(amount)
        anomaly = next(one for one in await store.anomalies(10, None) if one.amount == amount)
        new = NewRefund(id=new_id("ref"), anomaly_id=anomaly.id, destination=WALLET, note="Ana")
        refunds.append(await store.request_refund(new))
    arrived, failed, _ = (one.id for one in refunds if one is not None)
    signature = lite.leaves(500)
    await store.keep_signing(arrived, Signed(b"raw", signature, 300))
    lite.bench.clock.advance(5)
    await lite.post(signature)
    assert await store.end_signing(arrived, signature, Outcome.FINAL) is not None
    await store.give_up_refund(failed, "no such wallet")
    (again,) = await store.anomalies(10, None)
    assert (await store.resolve_anomaly(again.id, "Ana called", TERMS, quote.id)).refusal is None

    for order in Order:
        await identical(lite, order)

    lite.chain[signature]["meta"]["err"] = {"InstructionError": [0, "Custom"]}
    lied = await rebuilt(lite)
    assert f"the refund {arrived} has not left the treasury by the chain" in lied.undone


# What is not the same


async def test_a_payment_that_the_ledger_lacks_is_found(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance())
    await lite.pays(7_200, quote)
    missed = lite.lands(3_600, quote)

    done = await rebuilt(lite)

    assert f"receipt {missed}: the chain has it, and the ledger does not" in words(done)
    assert any(one.startswith(f"quote {quote.id}: 7200 were credited for 3600 s") for one in words(done))
    assert any(one.startswith("root") for one in words(done))
    assert not done.is_identical


async def test_a_payment_that_never_was_is_found(lite: Shop) -> None:
    """The ledger was told of one by nodes that lied; by now they tell that it failed."""
    quote = await lite.quote(await lite.instance())
    signature = await lite.pays(7_200, quote)
    lite.chain[signature]["meta"]["err"] = {"InstructionError": [0, "Custom"]}

    done = await rebuilt(lite)

    assert f"receipt {signature}: the ledger has it, and the chain does not" in words(done)


async def test_another_amount_is_found_in_words(lite: Shop) -> None:
    signature = await lite.pays(7_200, await lite.quote(await lite.instance()))
    rows = lite.chain[signature]["meta"]["postTokenBalances"]
    (after,) = (row for row in rows if row["owner"] == WALLET)
    after["uiTokenAmount"]["amount"] = str(int(after["uiTokenAmount"]["amount"]) - 1)

    done = await rebuilt(lite)

    told = f"receipt {signature}: amount is 7200 in the ledger, and 7199 on the chain"
    assert any(one.startswith(told) for one in words(done)), words(done)


async def test_what_no_history_shows_is_asked_about_all_the_same(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance())
    signatures = [await lite.pays(700, quote) for _ in range(4)]

    for order in Order:
        hidden = await rebuilt(lite, order, Nodes(lite, hidden={signatures[1]}))
        assert hidden.is_identical
        lost = await rebuilt(lite, order, Nodes(lite, unknown={signatures[2]}))
        assert lost.unchecked == {signatures[2]: "not_found_yet"}
        assert not lost.is_identical


async def test_a_gift_without_its_money_is_told(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance())
    signature = await lite.pays(500)
    (anomaly,) = await lite.bench.store.anomalies(10, None)
    await lite.bench.store.resolve_anomaly(anomaly.id, "Ana called", TERMS, quote.id)

    done = await rebuilt(lite, nodes=Nodes(lite, unknown={signature}))

    assert done.undone == (f"500 of {signature} do not wait in suspense, and cannot be given again",)


async def test_the_source_is_left_as_it_was_and_progress_is_told(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance())
    for _ in range(40):
        await lite.pays(100, quote)
    before = await lite.bench.store.journal(0, 100)
    seen: list[Progress] = []

    done = await rebuilt(lite, lookups_at_once=4, told=seen.append)

    assert done.is_identical
    assert await lite.bench.store.journal(0, 100) == before
    assert seen[-1] == (40, 40)
    assert [one.posted for one in seen] == sorted(one.posted for one in seen)


# Random histories


@dataclass
class History:
    """Whatever happens: two accounts, two instances, and days on which nobody tells of anything."""

    luck: random.Random
    shop: Shop
    instances: list[str] = field(default_factory=list)
    quotes: list[NewQuote] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        self.instances = [await self.shop.instance() for _ in range(2)]
        for _ in range(4):
            await self.ask()

    async def ask(self) -> None:
        gpu = self.luck.choice(self.instances)
        account = self.luck.choice(["acme", "globex"])
        found = await self.shop.bench.store.instance(gpu)
        assert found is not None
        if found.suspended_at is None and found.renter in {None, account}:
            price = self.luck.choice([HOUR.price, PriceOffer(USD, 7, 3).price])
            self.quotes.append(await self.shop.quote(gpu, account, 60, price))

    async def step(self) -> None:
        store = self.shop.bench.store
        match self.luck.randint(0, 11):
            case 0 | 1 | 2 | 3 | 4:
                quote = self.luck.choice([*self.quotes, None])
                amount = self.luck.choice([5, self.luck.randint(10, 3_000)])
                self.unheard.append(self.shop.lands(amount, *([quote] if quote else [])))
            case 5:
                await self.ask()
            case 6:
                prices = [PriceOffer(USD, self.luck.randint(1, 9), self.luck.randint(1, 9))]
                await store.change_prices(self.luck.choice(self.instances), prices)
            case 7:
                act = self.luck.choice([store.suspend_instance, store.resume_instance, store.resume_instance])
                await act(self.luck.choice(self.instances))
            case 8 | 9:
                await self.see_to_something()
            case _:
                self.shop.bench.clock.advance(self.luck.choice([0.25, 20, 700, LATE_SECONDS]))
                await store.expire_rentals(0, GRACE_SECONDS, 100)
        while self.unheard and self.luck.random() < 0.6:
            await self.shop.post(self.unheard.pop(self.luck.randrange(len(self.unheard))))

    async def see_to_something(self) -> None:
        store = self.shop.bench.store
        waiting = [one for one in await store.anomalies(100, None) if one.receipt is not None]
        if waiting:
            anomaly = self.luck.choice(waiting)
            if self.luck.random() < 0.5:
                await store.redrive_anomaly(anomaly.id, TERMS)
            else:
                given = self.luck.choice([*(quote.id for quote in self.quotes), None])
                await store.resolve_anomaly(anomaly.id, "seen to", TERMS, given)

    async def end(self) -> None:
        while self.unheard:
            await self.shop.post(self.unheard.pop())


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happened_it_is_the_same_again(lite: Shop, seed: int) -> None:
    history = History(random.Random(seed), lite)
    await history.begin()
    for _ in range(60):
        await history.step()
    await history.end()

    done = await identical(lite, Order.POSTED)

    assert done.comparison.receipts == len(lite.chain)
    statuses = [await lite.bench.store.quote(one.account, one.id) for one in history.quotes]
    assert any(one is not None and one.status is not QuoteStatus.OPEN for one in statuses)
