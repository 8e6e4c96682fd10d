"""The listener: what a source tells is written, and whatever it may have missed is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.core.metrics import METRICS
from tempa.core.retry import RetryPolicy
from tempa.settlement.inbox import Incoming, TakenIn
from tempa.settlement.listen import Backlog, Listener
from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached, SettlementStore, Told
from tempa.settlement.watch import TreasuryWatch
from tempa.testing.clock import ManualClock

ADDRESSES = ("wallet", "token account")
CONNECTED, LOST = Gap(GapReason.CONNECTED), Gap(GapReason.LOST)
PATIENCE_SECONDS = 10.0
POLICY = RetryPolicy(base_seconds=1.0, cap_seconds=8.0)


def pushed(number: int, size_bytes: int = 10) -> Pushed:
    return Pushed(f"signature {number}", 1000 + number, bytes(size_bytes))


class Source:
    """Tells what a test puts into it; `None` ends a connection. Knows what it was asked for."""

    name = "script"

    def __init__(self, moved: asyncio.Event) -> None:
        self.moved = moved
        self.telling: asyncio.Queue[Told | Exception | None] = asyncio.Queue()
        self.is_heard = False  # everything that was told
        self.asked: list[tuple[tuple[str, ...], int | None]] = []
        self.closed = 0

    async def listen(self, addresses: Sequence[str], from_slot: int | None) -> AsyncGenerator[Told, None]:
        self.asked.append((tuple(addresses), from_slot))
        self.moved.set()
        try:
            while (told := await self._next()) is not None:
                if isinstance(told, Exception):
                    raise told
                yield told
        finally:
            self.closed += 1
            self.moved.set()

    async def _next(self) -> Told | Exception | None:
        self.is_heard = self.telling.empty()
        self.moved.set()
        return await self.telling.get()

    def tell(self, *told: Told | Exception | None) -> None:
        self.is_heard = False
        for one in told:
            self.telling.put_nowait(one)


class Inbox:
    """The store's one command: `away` or `broken` for some signatures."""

    def __init__(self, moved: asyncio.Event) -> None:
        self.moved = moved
        self.written: list[Incoming] = []
        self.calls: list[str] = []
        self.away = False
        self.broken: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def take_in(self, incoming: Incoming) -> TakenIn:
        self.calls.append(incoming.signatures[0])
        self.moved.set()
        await self.gate.wait()
        if self.away:
            raise StoreUnavailable("away")
        if set(incoming.signatures) & self.broken:
            raise ValueError("no such column")
        known = {one for written in self.written for one in written.signatures}
        self.written.append(incoming)
        self.moved.set()
        return TakenIn(duplicates=1) if known & set(incoming.signatures) else TakenIn(accepted=1)

    def signatures(self) -> list[str]:
        return [one for incoming in self.written for one in incoming.signatures]


class Meter:
    """Keeps what is counted; refuses what `/metrics` would not know."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], float] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = self._key(name, labels)
        self.values[key] = self.values.get(key, 0) + amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.values[self._key(name, labels)] = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        raise AssertionError("nothing is timed here")

    def _key(self, name: str, labels: dict[str, str]) -> tuple[str, ...]:
        assert labels.pop("source") == "script"
        assert tuple(labels) == METRICS[name].labels[1:]
        return (name.removeprefix("tempa_settlement_"), *labels.values())


class Middle:
    """Dice that always fall on the middle."""

    def random(self) -> float:
        return 0.5


class Clock(ManualClock):
    """Knows how long it was slept for."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await super().sleep(seconds)


class Bench:
    def __init__(self) -> None:
        self.moved = asyncio.Event()
        self.source, self.inbox = Source(self.moved), Inbox(self.moved)
        self.clock, self.meter = Clock(), Meter()
        self.sweeps: list[float] = []

    def sweep(self) -> None:
        self.sweeps.append(self.clock.monotonic())
        self.moved.set()

    def listener(self, backlog: Backlog | None = None, batch_max: int = 256) -> Listener:
        return Listener(
            source=self.source,
            store=cast(SettlementStore, self.inbox),
            watch=watch(),
            on_gap=self.sweep,
            clock=self.clock,
            meter=self.meter,
            rng=Middle(),  # type: ignore[arg-type]  # a listener throws them and does nothing else
            backlog=backlog or Backlog(),
            retries=POLICY,
            batch_max=batch_max,
        )

    async def drop(self, count: int) -> None:
        """Let the connection of this number end, and the listener wait for the next."""
        self.source.tell(None)
        await self.until(lambda: self.source.closed == count)
        await self.clock.until_asleep()

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self.moved.clear()
                await self.moved.wait()


def watch() -> TreasuryWatch:
    """One that has found the treasury."""
    rows = tuple(
        TreasuryAccount(asset=SOL, address=address, owner="wallet", program=None, decimals=9)
        for address in ADDRESSES
    )

    @dataclass
    class Asked:
        treasury: Treasury

    made = TreasuryWatch(
        quorum=cast("object", Asked(Treasury(cluster="here", accounts=rows))),  # type: ignore[arg-type]
        store=cast(SettlementStore, None),
        wallet="wallet",
        mints=(),
    )
    made.ready.set()
    return made


@pytest.fixture
def bench() -> Bench:
    return Bench()


@asynccontextmanager
async def running(listener: Listener) -> AsyncIterator[asyncio.Task[None]]:
    stop = asyncio.Event()
    task = asyncio.create_task(listener.run(stop))
    try:
        yield task
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def test_what_is_told_is_in_the_inbox_with_the_bytes_it_came_in(bench: Bench) -> None:
    bench.source.tell(CONNECTED, Pushed("signature 1", 5, b"as it came"))
    async with running(bench.listener()):
        await bench.until(bench.inbox.signatures)
    assert bench.inbox.written == [Incoming(source="script", raw=b"as it came", signatures=("signature 1",))]
    assert bench.source.asked == [(ADDRESSES, None)]
    assert bench.meter.values[("heard_total", "accepted")] == 1


async def test_nothing_is_listened_to_before_the_treasury_is_known(bench: Bench) -> None:
    listener = bench.listener()
    listener.watch.ready.clear()
    async with running(listener) as task:
        done, _ = await asyncio.wait({task}, timeout=0.05)
        assert not done
        assert not bench.source.asked
        listener.watch.ready.set()
        await bench.until(lambda: bench.source.asked)


async def test_each_connection_asks_for_a_sweep_once_it_stands_and_when_it_ends(bench: Bench) -> None:
    async with running(bench.listener()):
        bench.source.tell(CONNECTED)
        await bench.until(lambda: len(bench.sweeps) == 1)
        await bench.clock.until_asleep()
        bench.clock.advance(10)
        bench.source.tell(LOST, None)
        await bench.until(lambda: len(bench.sweeps) == 2)
        await bench.clock.until_asleep(2)  # the next connection, and the next sweep
        bench.clock.advance(10)
        bench.source.tell(CONNECTED)
        await bench.until(lambda: len(bench.sweeps) == 3)
    assert len(bench.source.asked) == 2
    assert bench.meter.values[("gaps_total", "connected")] == 2
    assert bench.meter.values[("gaps_total", "lost")] == 1


async def test_gaps_that_follow_one_another_are_one_sweep_and_the_last_is_not_forgotten(bench: Bench) -> None:
    async with running(bench.listener()):
        bench.source.tell(CONNECTED)
        await bench.until(lambda: bench.sweeps == [0.0])
        await bench.clock.until_asleep()
        bench.source.tell(*[Gap(GapReason.SKIPPED)] * 50)
        await bench.until(lambda: bench.source.is_heard)
        bench.clock.advance(2.0)
        await bench.until(lambda: bench.sweeps == [0.0, 2.0])
        await bench.clock.until_asleep()
    assert bench.sweeps == [0.0, 2.0]


async def test_the_waits_before_connections_grow_to_their_cap_and_are_drawn(bench: Bench) -> None:
    async with running(bench.listener()):
        for count in range(1, 7):
            await bench.drop(count)
            bench.clock.advance(POLICY.cap_seconds)
    assert bench.clock.slept == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]  # half of 1, 2, 4, 8, 8, 8


async def test_a_connection_that_was_of_use_starts_the_waits_anew(bench: Bench) -> None:
    async with running(bench.listener()):
        for count in (1, 2):
            await bench.drop(count)
            bench.clock.advance(POLICY.cap_seconds)
        await bench.until(lambda: len(bench.source.asked) == 3)
        bench.clock.advance(POLICY.cap_seconds + 1)
        await bench.drop(3)
    assert bench.clock.slept == [0.5, 1.0, 0.5]


async def test_a_new_connection_begins_some_slots_before_the_last_final_one(bench: Bench) -> None:
    bench.source.tell(CONNECTED, Reached(5000), Reached(5001), LOST, None)
    async with running(bench.listener()):
        await bench.until(lambda: bench.source.closed)
        await bench.clock.until_asleep(2)
        bench.clock.advance(1)
        await bench.until(lambda: len(bench.source.asked) == 2)
    assert [from_slot for _, from_slot in bench.source.asked] == [None, 5001 - 64]


async def test_a_transaction_that_two_addresses_tell_of_is_written_once(bench: Bench) -> None:
    async with running(bench.listener(batch_max=1)):
        bench.source.tell(pushed(1), pushed(1), pushed(2), pushed(1))
        await bench.until(lambda: "signature 2" in bench.inbox.signatures())
    assert bench.inbox.signatures() == ["signature 1", "signature 2"]


async def test_a_flood_is_dropped_at_the_bound_and_asked_for(bench: Bench) -> None:
    bench.inbox.gate.clear()  # the store is slow
    async with running(bench.listener(Backlog(items_max=100))):
        bench.source.tell(*[pushed(number) for number in range(1000)])
        await bench.until(lambda: bench.source.is_heard)
        await bench.until(lambda: bench.sweeps)
        bench.inbox.gate.set()
        await bench.until(lambda: len(bench.inbox.written) >= 100)
    assert bench.inbox.signatures() == [f"signature {number}" for number in range(100)]
    assert bench.meter.values[("gaps_total", "overflow")] == 900


def test_a_backlog_is_bounded_in_bytes_too_and_room_comes_back() -> None:
    backlog = Backlog(items_max=10, size_bytes_max=100)
    assert [backlog.put(pushed(number, 40)) for number in range(3)] == [True, True, False]
    assert [one.signature for one in backlog.oldest(10)] == ["signature 0", "signature 1"]
    backlog.drop(1)
    assert backlog.put(pushed(3, 60))
    assert not backlog.put(pushed(4, 1))


async def test_while_the_store_is_away_what_is_told_waits(bench: Bench) -> None:
    bench.inbox.away = True
    async with running(bench.listener()):
        bench.source.tell(pushed(1), pushed(2))
        await bench.clock.until_asleep()
        assert not bench.inbox.written
        bench.inbox.away = False
        bench.clock.advance(1.0)
        await bench.until(lambda: len(bench.inbox.written) == 2)
    assert bench.inbox.signatures() == ["signature 1", "signature 2"]


async def test_one_that_cannot_be_written_delays_no_other_and_is_asked_for(bench: Bench) -> None:
    bench.inbox.broken = {"signature 2"}
    async with running(bench.listener()):
        bench.source.tell(pushed(1), pushed(2), pushed(3))
        await bench.until(lambda: len(bench.inbox.written) == 2 and bench.sweeps)
    assert bench.inbox.signatures() == ["signature 1", "signature 3"]
    assert bench.inbox.calls.count("signature 2") == 1


async def test_at_the_stop_what_was_told_is_written_and_the_connection_closed(bench: Bench) -> None:
    bench.inbox.gate.clear()
    async with running(bench.listener(batch_max=2)):
        bench.source.tell(*[pushed(number) for number in range(5)])
        await bench.until(lambda: bench.source.is_heard and bench.inbox.calls)
        bench.inbox.gate.set()
    assert sorted(set(bench.inbox.signatures())) == [f"signature {number}" for number in range(5)]
    assert bench.source.closed == 1


async def test_the_stop_does_not_wait_for_a_store_that_is_away(bench: Bench) -> None:
    bench.inbox.away = True
    async with running(bench.listener()) as task:
        bench.source.tell(pushed(1))
        await bench.clock.until_asleep()
    assert task.done()


async def test_a_source_that_breaks_is_listened_to_again(bench: Bench) -> None:
    bench.source.tell(CONNECTED, ValueError("a fault of ours"))
    async with running(bench.listener()):
        await bench.clock.until_asleep(2)
        bench.clock.advance(2)
        bench.source.tell(CONNECTED, pushed(1))
        await bench.until(lambda: bench.inbox.written)
    assert len(bench.source.asked) == 2
    assert bench.meter.values[("gaps_total", "lost")] == 1


async def test_the_gauge_shows_whether_it_listens(bench: Bench) -> None:
    async with running(bench.listener()):
        bench.source.tell(CONNECTED)
        await bench.until(lambda: bench.meter.values.get(("source_up",)) == 1)
        bench.source.tell(LOST, None)
        await bench.until(lambda: bench.meter.values.get(("source_up",)) == 0)
