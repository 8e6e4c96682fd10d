from __future__ import annotations

import asyncio
import os
import select
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke, Made, Order, RunLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

RUNNERS = Path(__file__).parent / "runners"
PATIENCE_SECONDS = 10.0


@dataclass
class Processes:
    """Processes by name, each held by a pidfd from when it told its number."""

    pidfds: dict[str, int] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)  # before they could be held

    def hold(self, name: str, pid: int) -> None:
        try:
            self.pidfds[name] = os.pidfd_open(pid)
        except ProcessLookupError:
            self.dead.add(name)

    def gone(self, name: str, within_seconds: float = 0.0) -> bool:
        return name in self.dead or bool(select.select([self.pidfds[name]], [], [], within_seconds)[0])

    def close(self) -> None:
        for pidfd in self.pidfds.values():
            os.close(pidfd)


@dataclass
class Watcher:
    """A progress callback that remembers, and holds the processes that report themselves."""

    processes: Processes
    stages: list[tuple[str, float | None]] = field(default_factory=list)
    _waiters: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)

    def __call__(self, stage: str, fraction: float | None) -> None:
        name, _, pid = stage.partition(" ")
        if pid:
            self.processes.hold(name, int(pid))
        self.stages.append((name, fraction))
        for awaited, waiter in self._waiters:
            if awaited == name and not waiter.done():
                waiter.set_result(None)

    async def reached(self, stage: str) -> None:
        if stage not in {name for name, _ in self.stages}:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((stage, waiter))
            await asyncio.wait_for(waiter, PATIENCE_SECONDS)


class MakeOrder(Protocol):
    def __call__(self, act: str, **order: Any) -> Order: ...


class Run(Protocol):
    async def __call__(
        self, act: str, progress: Callable[[str, float | None], None] | None = None, **order: Any
    ) -> Made | Broke: ...


@pytest.fixture
async def host() -> AsyncIterator[EngineHost]:
    host = EngineHost(extra_path=[RUNNERS], reap_seconds=0.5)
    yield host
    await host.close()


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.close()


@pytest.fixture
def watcher(processes: Processes) -> Watcher:
    return Watcher(processes)


@pytest.fixture
def make_order(tmp_path: Path) -> MakeOrder:
    """An order for one act of the wild engine."""

    def make_order(
        act: str,
        *,
        timeout_seconds: float = 20.0,
        memory_bytes: int = 1 << 30,
        module: str = "wild_engine",
        folder: Path | None = None,
        **work: Any,
    ) -> Order:
        return Order(
            engine="wild",
            module=module,
            life_cycle="fork",
            work={"do": act, **work},
            folder=folder or tmp_path,
            limits=RunLimits(timeout_seconds, memory_bytes),
        )

    return make_order


@pytest.fixture
def run(host: EngineHost, watcher: Watcher, make_order: MakeOrder) -> Run:
    """Run one act of the wild engine on the host."""

    async def run(
        act: str, progress: Callable[[str, float | None], None] | None = None, **order: Any
    ) -> Made | Broke:
        return await host.run(make_order(act, **order), progress or watcher)

    return run
