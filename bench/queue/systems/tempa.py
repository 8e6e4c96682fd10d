"""Tempa's phases, on whichever store: the worker's own loop and doorbell, with attempts that do nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from bench.calls import by_clients, every
from bench.queue.phases import Starts
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.jobs.dispatch import Worker
from tempa.testing.contracts.samples import COMPLETED, LANE, a_key, a_new_job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from bench.queue.phases import Options
    from tempa.core.work import Wake
    from tempa.jobs.model import Claimed
    from tempa.jobs.perform import Performer
    from tempa.jobs.ports import JobStore

    Go = Callable[[], Awaitable[None]]

SLOTS = 256
LEASE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A store that is ready, and its doorbell."""

    store: JobStore
    wake: Wake


class Open(Protocol):
    """Opens the store at a URL."""

    def __call__(self, url: str) -> AbstractAsyncContextManager[Opened]: ...


class Unmeasured:
    """A meter that keeps nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


@dataclass(frozen=True, slots=True)
class NoOp:
    """In the performer's place: publishes at once, fenced, and tells that the job had begun."""

    store: JobStore
    began: Callable[[int], None]

    async def perform(self, claimed: Claimed, draining: asyncio.Event) -> None:
        """One attempt."""
        del draining
        self.began(int(claimed.job.request.tags["n"]))
        assert await self.store.settle(claimed.lease, COMPLETED)


class Crew:
    """A worker in the background, and what it is waited for."""

    def __init__(self, opened: Opened, jobs: int) -> None:
        self.starts = Starts(jobs)
        self._stop = asyncio.Event()
        self._worker = Worker(
            store=opened.store,
            performer=cast("Performer", NoOp(opened.store, self.starts.began)),
            wake=opened.wake,
            meter=Unmeasured(),
            lanes=(LANE,),
            slots=SLOTS,
            lease_seconds=LEASE_SECONDS,
            worker_id=new_id("wrk"),
        )
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen, and take what comes."""
        self._task = asyncio.create_task(self._worker.run(self._stop))

    async def end(self) -> list[float]:
        """When each job began, once all have begun and ended."""
        assert self._task
        at = await self.starts.all()
        self._stop.set()
        await self._task
        return at


def admit(store: JobStore) -> Callable[[int], Awaitable[object]]:
    """Admits ticket `number`, under a key of its own."""
    clock = SystemClock()

    def one(number: int) -> Awaitable[object]:
        return store.admit(a_new_job(clock, key=a_key(f"k{number}"), tags={"n": str(number)}))

    return one


def phases(opening: Open, *, alone: bool) -> dict[str, Any]:
    """All of them. `alone`: the process that admits is also the one that works."""

    async def admission(options: Options, go: Go) -> Mapping[str, Any]:
        async with opening(options.url) as opened:
            await by_clients(options.clients, options.clients, _other_keys(opened.store))  # connections
            await go()
            return {"seconds": await by_clients(options.clients, options.jobs, admit(opened.store))}

    async def drain(options: Options, go: Go) -> Mapping[str, Any]:
        async with opening(options.url) as opened:
            await by_clients(256, options.jobs, admit(opened.store))
            crew = Crew(opened, options.jobs)
            await go()
            start = asyncio.get_running_loop().time()
            crew.begin()
            await crew.end()
            return {"seconds": asyncio.get_running_loop().time() - start}

    async def pickup(options: Options, go: Go) -> Mapping[str, Any]:
        async with opening(options.url) as opened:
            crew = Crew(opened, options.jobs)
            if alone:
                crew.begin()
            await go()
            calls = await every(options.every_seconds, options.jobs, admit(opened.store))
            return {"calls": calls, "starts": await crew.end() if alone else None}

    async def hear(options: Options, go: Go) -> Mapping[str, Any]:
        async with opening(options.url) as opened:
            crew = Crew(opened, options.jobs)
            crew.begin()
            await go()
            return {"starts": await crew.end()}

    return {"admission": admission, "drain": drain, "pickup": pickup, "hear": hear}


def _other_keys(store: JobStore) -> Callable[[int], Awaitable[object]]:
    clock = SystemClock()
    return lambda number: store.admit(a_new_job(clock, key=a_key(f"warm{number}"), lane="warm"))
