"""Verified credits a second: inbox to ledger over a node whose calls take 50 ms, beside its bare calls.

Bare: `getTransaction` of the same payments through the same client, as many at once, and nothing else. And
the store by itself: credits posted as they come beside one commit for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from bench.probes import weather
from bench.ratios import Goal, Pair, ratios
from bench.settlement.chain import FINAL_SLOTS, dev_chain
from bench.table import Row
from tempa.adapters.chains.solana import SolanaRpc
from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.schema import prepare
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import Treasury
from tempa.settlement.ports import Found
from tempa.settlement.post import Proven, Terms
from tempa.settlement.quorum import Agreed, Quorum, Rule
from tempa.settlement.quotes import PriceOffer, Quote, new_quote, reference_from
from tempa.settlement.rentals import NewInstance
from tempa.settlement.settle import Settler
from tempa.settlement.watch import ListedMint, TreasuryWatch
from tempa.testing.postgres import running_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from bench.settlement.chain import Running
    from tempa.testing.postgres import PostgresCluster

PAYMENTS, QUOTES, AT_ONCE = 600, 50, 32
LATENCY_SECONDS = 0.05
_LOOPBACK = (ip_network("127.0.0.0/8"),)
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_SECONDS = 3_600


@dataclass
class Counted:
    """A meter that tells when so many lookups have come to a credit."""

    left: int
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:  # noqa: ARG002
        """Anything but a credit ends the measurement at once, as a fault."""
        if name != "tempa_settlement_lookups_total":
            return
        assert labels["outcome"] == "credited", labels
        self.left -= 1
        if not self.left:
            self.done.set()

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


def measure(folder: Path, *, rounds: int) -> list[Row]:
    """Rows of the table."""
    with dev_chain(folder, "--slot-ms", "0") as chain, running_cluster(_DURABLE) as cluster:
        bench = _Bench(folder, chain, cluster)
        return asyncio.run(bench.measured(rounds))


@dataclass
class _Bench:
    folder: Path
    chain: Running
    cluster: PostgresCluster
    references: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    rows: dict[str, list[float]] = field(default_factory=dict)
    pairs: dict[str, list[Pair]] = field(default_factory=dict)

    async def measured(self, rounds: int) -> list[Row]:
        await asyncio.to_thread(self._pay)
        for number in range(rounds):
            bare = await self._bare()
            self.rows.setdefault("bare", []).append(bare)
            async with self._postgres(number) as store:
                self._note("postgres", await self._settled(store), bare)
            async with self._sqlite(number) as store:
                self._note("sqlite", await self._settled(store), bare)
            await self._posted(number)
        return self._told()

    def _told(self) -> list[Row]:
        rows, pairs = self.rows, {name: ratios(each) for name, each in self.pairs.items()}
        return [
            Row(f"bare getTransaction calls a second, {AT_ONCE} at once, 50 ms", rows["bare"]),
            Row("verified credits a second, PostgreSQL", rows["postgres"]),
            Row("... as a multiple of bare calls", pairs["postgres"], Goal(0.6, at_least=True)),
            Row("verified credits a second, SQLite (FULL)", rows["sqlite"]),
            Row("... as a multiple of bare calls", pairs["sqlite"]),
            Row("SQLite (FULL): a commit for each credit, a second", rows["single"]),
            Row("... credits as they come, as a multiple", pairs["posted"], Goal(1.5, at_least=True)),
        ]

    def _note(self, what: str, ours: float, theirs: float) -> None:
        self.rows.setdefault(what, []).append(ours)
        self.pairs.setdefault(what, []).append(Pair(ours, theirs, ()))

    def _pay(self) -> None:
        dice = random.Random(6)
        self.references = [reference_from(dice.randbytes(32)) for _ in range(QUOTES)]
        mint = self.chain.ready["mint"]
        for number in range(PAYMENTS):
            self.signatures.append(self.chain.pay(mint, 1_000 + number, self.references[number % QUOTES]))
            if number % 50 == 49:
                self.chain.act("/tick", slots=1)
        self.chain.act("/tick", slots=FINAL_SLOTS)
        self.chain.act("/nodes/0", latency_seconds=LATENCY_SECONDS)

    async def _bare(self) -> float:
        async with self._node() as node:
            waiting = iter(self.signatures)

            async def caller() -> None:
                for signature in waiting:
                    assert isinstance(await node.get_transaction(signature), Found)

            started = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(caller())
            return PAYMENTS / (time.perf_counter() - started)

    async def _settled(self, store: Any) -> float:
        async with self._node() as node:
            settler, counted = await self._settler(store, node), Counted(PAYMENTS)
            settler.meter = counted
            await self._open_quotes(store, settler.watch)
            await store.take_in(Incoming(source="bench", raw=b"[]", signatures=tuple(self.signatures)))
            stop, started = asyncio.Event(), time.perf_counter()
            task = asyncio.create_task(settler.run(stop))
            await counted.done.wait()
            took = time.perf_counter() - started
            stop.set()
            await task
            return PAYMENTS / took

    async def _posted(self, number: int) -> None:
        """The store alone, with verdicts at hand."""
        async with self._node() as node, self._sqlite(number, "single") as one, self._sqlite(number) as many:
            flushes = [weather(self.folder).flushes_per_second]
            verdicts = await self._verdicts(one, node)
            settler = await self._settler(many, node)
            await self._open_quotes(many, settler.watch)
            started = time.perf_counter()
            for proven in verdicts:
                await one.post_credits(proven)
            single = PAYMENTS / (time.perf_counter() - started)
            started = time.perf_counter()
            waiting = iter(verdicts)

            async def poster() -> None:
                for proven in waiting:
                    await many.post_credits(proven)

            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(poster())
            batched = PAYMENTS / (time.perf_counter() - started)
            flushes.append(weather(self.folder).flushes_per_second)
            self.rows.setdefault("single", []).append(single)
            self.pairs.setdefault("posted", []).append(Pair(batched, single, flushes))

    async def _verdicts(self, store: Any, node: SolanaRpc) -> Sequence[Proven]:
        settler = await self._settler(store, node)
        await self._open_quotes(store, settler.watch)
        made = []
        for start in range(0, PAYMENTS, AT_ONCE):
            some = self.signatures[start : start + AT_ONCE]
            for agreed in await asyncio.gather(*map(settler.quorum.check, some)):
                assert isinstance(agreed, Agreed)
                told = [{"node": each.node, "answer": each.answer} for each in agreed.evidence]
                made.append(Proven(verdict=agreed.verdict, terms=settler.terms, evidence=told))
        return made

    async def _settler(self, store: Any, node: SolanaRpc) -> Settler:
        quorum = Quorum([node], Treasury(cluster="", accounts=()), Rule(nodes=1))
        ready = self.chain.ready
        listed = [ListedMint(mint=ready["mint"])]
        watch = TreasuryWatch(quorum=quorum, store=store, wallet=ready["treasury"], mints=listed)
        await watch.look()
        return Settler(
            store=store,
            quorum=quorum,
            watch=watch,
            terms=Terms(operator="operator"),
            wake=InProcessWake(),
            clock=SystemClock(),
            meter=Counted(0),
            rng=random.Random(1),
            lookups_max=AT_ONCE,
        )

    async def _open_quotes(self, store: Any, watch: TreasuryWatch) -> None:
        assert watch.treasury is not None
        row = watch.treasury.accounts[1]
        offer = PriceOffer(row.asset, 10, 1)
        for reference in self.references:
            instance = await store.add_instance(NewInstance(id=new_id("gpu"), name="bench", prices=(offer,)))
            opened = await store.open_quote(
                new_quote(
                    quote_id=new_id("quo"),
                    account="default",
                    gpu_instance_id=instance.id,
                    seconds=_SECONDS,
                    price=offer.price,
                    treasury=row,
                    reference=reference,
                    now=SystemClock().now(),
                    lock_seconds=3_600.0,
                )
            )
            assert isinstance(opened, Quote)

    @contextlib.asynccontextmanager
    async def _node(self) -> AsyncIterator[SolanaRpc]:
        sender = CurlSender(_LOOPBACK, connect_timeout_seconds=5.0, body_seconds=10.0)
        url = self.chain.ready["rpc_url"]
        yield SolanaRpc(url, sender, rate_per_second=100_000.0, burst=10_000)
        await sender.close()

    @contextlib.asynccontextmanager
    async def _sqlite(self, number: int, name: str = "many") -> AsyncIterator[SqliteStore]:
        path = self.folder / f"{name}-{number}-{new_id('run')}.db"
        store = await SqliteStore.open(path, clock=SystemClock(), wake=InProcessWake())
        yield store
        await store.close()

    @contextlib.asynccontextmanager
    async def _postgres(self, number: int) -> AsyncIterator[PostgresStore]:
        name = f"round_{number}"
        await asyncio.to_thread(self.cluster.execute, f"create database {name}")
        url = self.cluster.url(name)
        await prepare(url)
        store = await PostgresStore.open(Address(url), wake=InProcessWake())
        yield store
        await store.close()
