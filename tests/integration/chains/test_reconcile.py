"""The ledger is what the chain shows, account by account and slot by slot; else a person hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.clock import SystemClock
from tempa.settlement.model import SOL
from tempa.settlement.reconcile import Reconciler, Seen
from tempa.testing.devchain import instructions as make
from tests.integration.chains.sweeping import Hiding, Tally, sweeper
from tests.integration.chains.till import FINAL_SLOTS, Outcomes, Till

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.settlement.sweep import Sweeper
    from tests.integration.chains.conftest import Connect

MISMATCH = "tempa_settlement_mismatch"


class Books:
    """A till with its sweep and its reconciliation, checked by hand."""

    def __init__(self, till: Till) -> None:
        self.till = till
        self.meter = Tally()
        self.sweeper: Sweeper = sweeper(till)
        self.reconciler = Reconciler(
            store=till.store,
            quorum=till.quorum,
            watch=till.watch,
            swept=self.sweeper.swept,
            clock=SystemClock(),
            meter=self.meter,
        )

    async def sweep(self, outcomes: Outcomes) -> None:
        """On every node, and everything that was found is settled."""
        for _ in self.till.nodes:
            await self.sweeper.sweep()
        while (await self.till.store.pending_lookups())[0]:
            await outcomes.next()

    async def check(self) -> dict[str, bool]:
        """By account, whether it could be compared."""
        seen = await self.reconciler.look()
        return {address: await self.reconciler.compare(address, found) for address, found in seen.items()}

    def off(self) -> dict[str, float]:
        """By account, what the gauge shows."""
        return {name[-1]: value for name, value in self.meter.gauges.items() if name[0] == MISMATCH}

    async def told(self) -> list[str]:
        """What people are told of balances."""
        anomalies = await self.till.store.anomalies(100, None)
        return [one.detail for one in anomalies if one.reason == "balance_mismatch"]


@pytest.fixture
async def books(till: Till) -> Books:
    await till.watch.look()
    return Books(till)


@contextlib.contextmanager
def editing(path: Path) -> Any:
    """Somebody with the database's password, and no respect for triggers."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select name from sqlite_master where type = 'trigger'").fetchall()
        for (name,) in rows:
            connection.execute(f'drop trigger "{name}"')
        yield connection
        connection.commit()


async def test_every_account_agrees_from_its_first_day_on(books: Books) -> None:
    """Money in and out in both assets, fees that the treasury paid, and one that failed."""
    till, chain = books.till, books.till.chain
    async with till.settling() as outcomes:
        for asset in (SOL, str(chain.mint)):
            till.pay(await till.quote(30, asset))
        till.pay_nobody(7_777)
        key, mint = chain.treasury.key, chain.mint
        chain.treasury.send(make.pay_sol(key, chain.payer.key, 5_000_000))
        source, target = chain.treasury.account(mint), chain.payer.account(mint)
        chain.treasury.send(make.pay(source, target, key, 11))
        chain.treasury.send(make.pay(source, target, key, 2**62), skip_preflight=True)
        chain.cluster.tick(FINAL_SLOTS)
        await books.sweep(outcomes)

        for _ in range(2):
            assert set((await books.check()).values()) == {True}
    assert books.off() == {row.address: 0 for row in till.watch.treasury.accounts}  # type: ignore[union-attr]
    flows = await till.store.flows()
    assert flows[SOL, str(key)].sent == 5_000_000 + 3 * 5_000  # the base fee of each of three
    assert await books.told() == []


async def test_a_payment_on_its_way_is_no_mismatch(books: Books) -> None:
    till = books.till
    async with till.settling() as outcomes:
        await books.sweep(outcomes)
        for lamports in (5_000, 6_000):
            seen = await books.reconciler.look()
            till.pay_nobody(lamports)  # after the balance was read
            await books.sweep(outcomes)
            for address, found in seen.items():
                assert await books.reconciler.compare(address, found)
    assert set(books.off().values()) == {0}
    assert await books.told() == []


async def test_nothing_is_compared_before_it_is_swept_and_looked_up(books: Books) -> None:
    till = books.till
    await books.sweeper.sweep()
    assert set((await books.check()).values()) == {False}  # by one node only
    await books.sweeper.sweep()
    assert set((await books.check()).values()) == {False}  # nothing was looked up
    async with till.settling() as outcomes:
        await books.sweep(outcomes)
    assert set((await books.check()).values()) == {True}


async def test_money_that_all_nodes_hide_is_missed_after_two_checks_and_the_alarm_ends_with_it(
    till: Till, connect: Connect
) -> None:
    nodes = [Hiding(connect(number)) for number in range(2)]
    wary = Till(till.chain, till.store, till.wake, nodes)
    await wary.watch.look()
    books = Books(wary)
    wallet = str(wary.chain.treasury.key)
    async with wary.settling() as outcomes:
        await books.sweep(outcomes)
        hidden = wary.pay_nobody(4_321)
        for node in nodes:
            node.hidden = {hidden}
        await books.sweep(outcomes)

        await books.check()
        assert not books.off().get(wallet)
        assert await books.told() == []
        await books.check()
        assert books.off()[wallet] == 4_321
        (detail,) = await books.told()
        flows = (await wary.store.flows())[SOL, wallet]
        balance = wary.chain.cluster.bank.account(wary.chain.treasury.key)
        assert balance is not None
        assert f"the chain has {balance.lamports}, the ledger {flows.received - flows.sent} " in detail

        for node in nodes:
            node.hidden = set()
        await books.sweep(outcomes)
        await books.check()
    assert books.off()[wallet] == 0
    assert await books.told() == []


async def test_one_nodes_lie_about_a_balance_is_no_alarm(books: Books) -> None:
    till = books.till
    async with till.settling() as outcomes:
        await books.sweep(outcomes)
    wallet = str(till.chain.treasury.key)
    honest = (await books.reconciler.look())[wallet]
    for _ in range(2):
        assert await books.reconciler.compare(wallet, Seen(honest.slot, honest.amount + 5))
        assert not books.off().get(wallet)
        assert await books.told() == []
        assert await books.reconciler.compare(wallet, honest)
    assert books.off()[wallet] == 0


async def test_the_journal_is_verified_bit_by_bit_and_a_change_in_it_is_an_alarm(
    books: Books, tmp_path: Path
) -> None:
    till = books.till
    async with till.settling() as outcomes:
        for amount in range(5):
            till.pay_nobody(5_000 + amount)
        await books.sweep(outcomes)
    await books.reconciler.check_journal()
    assert "journal_broken" not in await till.reasons()

    with editing(tmp_path / "tempa.db") as connection:
        connection.execute("update journal set detail = replace(detail, 'slot', 'slop') where number = 2")
    await books.reconciler.check_journal()

    (alarm,) = [one for one in await till.store.anomalies(100, None) if one.reason == "journal_broken"]
    assert alarm.detail == "entry 2 does not follow"
    with editing(tmp_path / "tempa.db") as connection:
        connection.execute("update journal set detail = replace(detail, 'slop', 'slot') where number = 2")
    await books.reconciler.check_journal()
    assert "journal_broken" not in await till.reasons()


async def test_a_receipt_without_its_entry_is_an_alarm(books: Books, tmp_path: Path) -> None:
    till = books.till
    async with till.settling() as outcomes:
        till.pay_nobody(5_000)
        await books.sweep(outcomes)
    with editing(tmp_path / "tempa.db") as connection:
        connection.execute("update receipt set amount = '6000' where amount = '5000'")

    await books.reconciler.check_journal()

    assert "journal_broken" in await till.reasons()


async def test_it_runs_by_itself(books: Books) -> None:
    till = books.till
    books.reconciler.patience_seconds = 0.01
    compared = asyncio.Event()
    gauge = books.meter.gauge

    def noted(name: str, value: float, **labels: str) -> None:
        gauge(name, value, **labels)
        if len(books.off()) == len(till.watch.treasury.accounts):  # type: ignore[union-attr]
            compared.set()

    books.meter.gauge = noted  # type: ignore[method-assign]
    stop = asyncio.Event()
    async with till.settling(), asyncio.timeout(20), asyncio.TaskGroup() as group:
        books.sweeper.every_seconds = 0.05
        group.create_task(books.sweeper.run(stop))
        group.create_task(books.reconciler.run(stop))
        await compared.wait()
        stop.set()
    assert set(books.off().values()) == {0}
