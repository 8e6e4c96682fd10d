"""A worker: as many jobs as it has slots, no more, and none lost when it stops."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.errors import StoreUnavailable
from tempa.core.work import lane_topic
from tempa.jobs.dispatch import Worker
from tempa.jobs.model import Claimed, Lease
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import PATIENCE_SECONDS, Tally, a_job

if TYPE_CHECKING:
    from tempa.jobs.perform import Performer
    from tempa.jobs.ports import JobStore


@dataclass
class Queue:
    """Jobs that wait; notes how many were asked for. `away`: so often it cannot be reached."""

    waiting: deque[str] = field(default_factory=deque)
    limits: list[int] = field(default_factory=list)
    away: int = 0
    next_seconds: float | None = None  # until the first delayed one is due
    standing_by: Worker | None = None
    stood_down: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def stand_by(self, worker: Worker) -> Iterator[None]:
        self.standing_by = worker
        yield
        self.standing_by = None
        self.stood_down.set()

    async def next_delayed(self, lanes: Sequence[str]) -> float | None:
        assert lanes == ["cpu"]
        return self.next_seconds

    async def claim(
        self, worker: str, lanes: Sequence[str], limit: int, lease_seconds: float
    ) -> list[Claimed]:
        assert (worker, lanes, lease_seconds) == ("w-1", ["cpu"], 30.0)
        if self.away:
            self.away -= 1
            raise StoreUnavailable
        self.limits.append(limit)
        names = [self.waiting.popleft() for _ in range(min(limit, len(self.waiting)))]
        return [Claimed(Lease(name, 1), a_job(id=name)) for name in names]


@dataclass
class Jobs:
    """A performer whose jobs run until the test ends them, or the worker drains."""

    running: dict[str, asyncio.Event] = field(default_factory=dict)
    most: int = 0
    done: list[str] = field(default_factory=list)
    handed_back: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def perform(self, claimed: Claimed, draining: asyncio.Event) -> None:
        name = claimed.job.id
        finish = await self._begin(name)
        ends = [asyncio.create_task(event.wait()) for event in (finish, draining)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        (self.done if finish.is_set() else self.handed_back).append(name)
        await self._end(name)
        if name in self.broken:
            raise StoreUnavailable

    async def _begin(self, name: str) -> asyncio.Event:
        async with self._news:
            finish = self.running[name] = asyncio.Event()
            self.most = max(self.most, len(self.running))
            self._news.notify_all()
        return finish

    async def _end(self, name: str) -> None:
        async with self._news:
            del self.running[name]
            self._news.notify_all()

    async def until_running(self, *names: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(lambda: self.running.keys() == set(names))


class WatchedClock(ManualClock):
    """Notes how long it was asked to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await super().sleep(seconds)


@dataclass
class Bench:
    """A worker with two slots, and what it touches."""

    queue: Queue = field(default_factory=Queue)
    jobs: Jobs = field(default_factory=Jobs)
    clock: WatchedClock = field(default_factory=WatchedClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    wake: InProcessWake = field(init=False)

    def __post_init__(self) -> None:
        self.wake = InProcessWake(self.clock)

    async def asleep(self) -> None:
        """Until the worker has nothing to do and waits for time to pass."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.clock.until_asleep()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The worker at work; it is stopped in the end, and must then return."""
        worker = Worker(
            store=cast("JobStore", self.queue),
            performer=cast("Performer", self.jobs),
            wake=self.wake,
            meter=Tally(),
            lanes=["cpu"],
            slots=2,
            lease_seconds=30.0,
            worker_id="w-1",
        )
        role = asyncio.create_task(worker.run(self.stop))
        yield
        self.stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await role


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_it_takes_no_more_than_its_slots_and_the_next_when_one_is_free(bench: Bench) -> None:
    bench.queue.waiting.extend("abcd")
    async with bench.working():
        await bench.jobs.until_running("a", "b")
        assert list(bench.queue.waiting) == ["c", "d"]
        bench.jobs.running["a"].set()
        await bench.jobs.until_running("b", "c")
        bench.jobs.running["b"].set()
        bench.jobs.running["c"].set()
        await bench.jobs.until_running("d")

    assert bench.jobs.most == 2
    assert bench.queue.limits[:2] == [2, 1]
    assert 0 not in bench.queue.limits


async def test_when_it_stops_every_running_job_is_handed_back_before_it_returns(bench: Bench) -> None:
    bench.queue.waiting.extend("abc")
    async with bench.working():
        await bench.jobs.until_running("a", "b")

    assert (bench.jobs.handed_back, bench.jobs.done, bench.jobs.running) == (["a", "b"], [], {})
    assert list(bench.queue.waiting) == ["c"]


async def test_a_ring_makes_it_look_at_once_and_time_does_when_no_ring_comes(bench: Bench) -> None:
    async with bench.working():
        await bench.asleep()
        bench.queue.waiting.append("a")
        bench.wake.ring(lane_topic("cpu"))
        await bench.jobs.until_running("a")
        assert bench.clock.monotonic() == 0
        await bench.asleep()
        bench.queue.waiting.append("b")
        bench.clock.advance(1.0)
        await bench.jobs.until_running("a", "b")

    assert set(bench.clock.sleeps) == {1.0}
    assert sorted(bench.jobs.handed_back) == ["a", "b"]


@pytest.mark.parametrize(("next_seconds", "sleeps"), [(None, 1.0), (0.25, 0.25), (0.001, 0.001), (60.0, 1.0)])
async def test_it_sleeps_until_the_next_retry_is_due_and_a_second_at_most(
    bench: Bench, next_seconds: float | None, sleeps: float
) -> None:
    bench.queue.next_seconds = next_seconds
    async with bench.working():
        await bench.asleep()
        bench.queue.waiting.append("a")
        bench.clock.advance(sleeps)
        await bench.jobs.until_running("a")

    assert bench.clock.sleeps[0] == sleeps


async def test_with_all_slots_taken_it_waits_for_a_job_to_end_and_for_nothing_else(bench: Bench) -> None:
    bench.queue.waiting.extend("abc")
    bench.queue.next_seconds = 0.25
    async with bench.working():
        await bench.jobs.until_running("a", "b")
        bench.jobs.running["a"].set()
        await bench.jobs.until_running("b", "c")

    assert bench.clock.sleeps == []
    assert bench.queue.limits == [2, 1]


async def test_an_ending_that_could_not_be_written_frees_its_slot_and_is_told(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.queue.waiting.extend("abc")
    bench.jobs.broken = {"a"}
    async with bench.working():
        await bench.jobs.until_running("a", "b")
        bench.jobs.running["a"].set()
        await bench.jobs.until_running("b", "c")

    assert (bench.jobs.most, bench.jobs.done, sorted(bench.jobs.handed_back)) == (2, ["a"], ["b", "c"])
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (vars(record)["job_id"], vars(record)["attempt"]) == ("a", 1)
    assert record.exc_info


async def test_a_store_that_is_away_is_asked_again_after_a_second(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.queue.waiting.append("a")
    bench.queue.away = 1
    bench.queue.next_seconds = 0.25
    async with bench.working():
        await bench.asleep()
        assert (bench.queue.away, bench.jobs.running) == (0, {})
        bench.clock.advance(1.0)
        await bench.jobs.until_running("a")

    assert bench.clock.sleeps[0] == 1.0
    assert bench.queue.limits == [2, 1]
    assert "the store is away; jobs wait for it" in [record.message for record in caplog.records]


def handed(name: str) -> list[Claimed]:
    return [Claimed(Lease(name, 1), a_job(id=name))]


async def test_a_job_that_is_handed_over_takes_the_slot_that_was_kept_for_it(bench: Bench) -> None:
    async with bench.working():
        await bench.asleep()
        worker = bench.queue.standing_by
        assert worker
        kept = [worker.reserve("gpu"), worker.reserve("cpu"), worker.reserve("cpu"), worker.reserve("cpu")]
        looked = len(bench.queue.limits)
        worker.take(handed("a"))
        worker.take([])  # nothing came of it
        again = worker.reserve("cpu")
        worker.take(handed("b"))
        await bench.jobs.until_running("a", "b")

        assert kept == [False, True, True, False]
        assert again
        assert len(bench.queue.limits) == looked  # nothing to look for
        assert not worker.reserve("cpu")
        bench.queue.waiting.append("c")
        bench.jobs.running["a"].set()
        await bench.jobs.until_running("b", "c")


async def test_a_kept_slot_is_not_claimed_for(bench: Bench) -> None:
    async with bench.working():
        await bench.asleep()
        assert bench.queue.standing_by
        assert bench.queue.standing_by.reserve("cpu")
        bench.queue.waiting.extend("ab")
        bench.wake.ring(lane_topic("cpu"))
        await bench.jobs.until_running("a")

        assert bench.queue.limits[-1] == 1
        bench.queue.standing_by.take(handed("c"))
        await bench.jobs.until_running("a", "c")


async def test_a_job_on_its_way_when_the_worker_stops_is_waited_for_and_handed_back(bench: Bench) -> None:
    async with bench.working():
        await bench.asleep()
        worker = bench.queue.standing_by
        assert worker
        assert worker.reserve("cpu")
        bench.stop.set()
        refused = worker.reserve("cpu")

        async def arrive() -> None:
            await bench.queue.stood_down.wait()
            worker.take(handed("a"))

        arriving = asyncio.create_task(arrive())

    assert arriving.done()
    assert not refused
    assert bench.jobs.handed_back == ["a"]
