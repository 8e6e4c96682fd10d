"""Between a child's report and its end, and between its fork and its task."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Made
from tests.integration.host.conftest import PATIENCE_SECONDS, RUNNERS
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tempa.engines.host.seat import Seat


class Closing:
    """A host whose children get a moment to leave."""

    def __init__(self, leave_seconds: float) -> None:
        self.host = EngineHost(extra_path=[RUNNERS], leave_seconds=leave_seconds, reap_seconds=0.5)

    async def aclose(self) -> None:
        await self.host.close()


async def waiting_child(host: EngineHost, run: Any, module: str = "wild_engine") -> Seat:
    """The child that was forked ahead when another was reaped."""
    await run("make", text="x", module=module)
    cycle: Any = host._cycles["fork"]
    if cycle._leavers:
        await asyncio.wait(cycle._leavers, timeout=PATIENCE_SECONDS)
    seat: Seat = cycle._current[module]._spare
    forked = asyncio.Event()
    seat.when_begun(forked.set)
    await asyncio.wait_for(forked.wait(), PATIENCE_SECONDS)
    return seat


@pytest.fixture
async def impatient() -> AsyncIterator[EngineHost]:
    async with aclosing(Closing(leave_seconds=0.1)) as closing:
        yield closing.host


async def test_a_child_that_has_reported_and_stays_is_killed(
    impatient: EngineHost, make_order: Any, watcher: Any
) -> None:
    assert isinstance(await impatient.run(make_order("linger"), watcher), Made)
    assert not watcher.processes.gone("begun")
    zygotes = zygote_pids()
    assert await asyncio.to_thread(watcher.processes.gone, "begun", PATIENCE_SECONDS)
    assert isinstance(await impatient.run(make_order("make", text="x"), watcher), Made)
    assert zygote_pids() == zygotes


async def test_a_crash_after_the_report_fails_nothing_and_is_in_the_log(
    host: EngineHost, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(await run("crash_on_leaving"), Made)
    cycle: Any = host._cycles["fork"]
    await asyncio.wait(cycle._leavers, timeout=PATIENCE_SECONDS)
    assert [vars(record)["exit_code"] for record in caplog.records] == [-signal.SIGSEGV]


async def test_closing_the_host_complains_of_nobody_who_is_on_the_way_out(
    host: EngineHost, run: Any, watcher: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(await run("linger"), Made)
    await host.close()
    assert watcher.processes.gone("begun")
    assert caplog.records == []


@pytest.mark.parametrize("company", ["thread", "process", "orphan"])
async def test_a_report_does_not_count_while_something_else_of_the_attempt_may_write(
    run: Any, watcher: Any, company: str
) -> None:
    made = await run("keep_company", company=company, timeout_seconds=0.3)  # it stays until it is killed
    assert isinstance(made, Made)
    assert watcher.processes.gone("begun")


async def test_no_more_children_are_on_their_way_out_than_there_are_cores(
    make_order: Any, watcher: Any
) -> None:
    async with aclosing(Closing(leave_seconds=60.0)) as closing:
        for _ in range(os.cpu_count() or 1):
            await closing.host.run(make_order("linger"), watcher)
            assert not watcher.processes.gone("begun")
        made = await closing.host.run(make_order("linger", timeout_seconds=0.2), watcher)
        assert isinstance(made, Made)
        assert watcher.processes.gone("begun")


async def test_a_child_waits_for_its_task(host: EngineHost, run: Any) -> None:
    await waiting_child(host, run)
    (zygote,) = zygote_pids()
    os.kill(zygote, signal.SIGSTOP)  # it forks no more
    try:
        made = await asyncio.wait_for(run("look_around"), PATIENCE_SECONDS)
    finally:
        os.kill(zygote, signal.SIGCONT)
    assert made.measurements["zygote"] == zygote


async def test_a_child_that_dies_while_it_waits_costs_nobody_an_attempt(
    host: EngineHost, run: Any, processes: Any
) -> None:
    seat = await waiting_child(host, run)
    processes.hold("ahead", seat.pid)
    os.kill(seat.pid, signal.SIGKILL)
    assert processes.gone("ahead", PATIENCE_SECONDS)
    assert isinstance(await run("make", text="x"), Made)


async def test_a_child_that_waits_ends_with_the_host(host: EngineHost, run: Any, processes: Any) -> None:
    seat = await waiting_child(host, run)
    processes.hold("ahead", seat.pid)
    await host.close()
    assert processes.gone("ahead", PATIENCE_SECONDS)


async def test_a_child_that_waits_does_not_keep_a_spoiled_zygote(
    host: EngineHost, run: Any, processes: Any
) -> None:
    await waiting_child(host, run)
    processes.hold("zygote", *zygote_pids())
    cycle: Any = host._cycles["fork"]
    cycle._current["wild_engine"].retire()
    assert await asyncio.to_thread(processes.gone, "zygote", PATIENCE_SECONDS)


async def test_a_child_whose_zygote_is_dead_gets_no_task(host: EngineHost, run: Any, processes: Any) -> None:
    """It is dying too, for some milliseconds: a loaded kernel's memory takes that long to free."""
    await waiting_child(host, run, "bare_kernel")
    (zygote,) = zygote_pids()
    processes.hold("zygote", zygote)
    os.kill(zygote, signal.SIGKILL)
    assert processes.gone("zygote", PATIENCE_SECONDS)
    assert isinstance(await run("", module="bare_kernel"), Made)
