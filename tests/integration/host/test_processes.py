from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke, Made
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

HERE = Path(__file__).parent
RUNNERS = HERE / "runners"
DEATH_SECONDS = 2.0


def ignore(stage: str, fraction: float | None) -> None:
    pass


@contextlib.asynccontextmanager
async def running(attempt: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.create_task(attempt)
    yield task
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


async def test_a_canceled_attempt_is_gone_when_the_cancellation_goes_on(run: Any, watcher: Any) -> None:
    async with running(run("ignore_sigterm")) as attempt:
        await watcher.reached("deaf")
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert watcher.processes.gone("begun")


async def test_cancelling_twice_does_not_leave_the_process_behind(run: Any, watcher: Any) -> None:
    async with running(run("spin_in_c")) as attempt:
        await watcher.reached("begun")
        attempt.cancel()
        await asyncio.wait({attempt}, timeout=0)  # one turn of the loop: the kill is under way
        assert not attempt.done()
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert watcher.processes.gone("begun")


async def test_cancelling_while_the_engine_loads_leaves_the_next_attempt_its_zygote(
    host: EngineHost, run: Any
) -> None:
    async with running(run("make", text="x")) as attempt:
        await asyncio.wait({attempt}, timeout=0)
        loading = zygote_pids()
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert isinstance(await run("make", text="x"), Made)
    assert zygote_pids() == loading != []


@pytest.mark.parametrize("then", ["wait", "leave"])
async def test_a_grandchild_dies_with_the_attempt(run: Any, watcher: Any, then: str) -> None:
    outcome = await run("grandchild", timeout_seconds=0.4, then=then)
    assert isinstance(outcome, Broke if then == "wait" else Made)
    assert watcher.processes.gone("grandchild", DEATH_SECONDS)


async def test_a_grandchild_dies_with_a_canceled_attempt(run: Any, watcher: Any) -> None:
    async with running(run("grandchild", then="wait")) as attempt:
        await watcher.reached("grandchild")
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert watcher.processes.gone("begun")
    assert watcher.processes.gone("grandchild", DEATH_SECONDS)


async def test_attempts_run_side_by_side(run: Any, processes: Any, watcher: Any, tmp_path: Path) -> None:
    """Eight attempts that can only end when all eight have begun."""
    folders = [tmp_path / f"{number}" for number in range(8)]
    attempts = []
    begun = asyncio.Semaphore(0)
    for folder in folders:
        folder.mkdir()
        os.mkfifo(folder / "word")
        tell = lambda stage, fraction: begun.release()  # noqa: E731
        attempts.append(asyncio.create_task(run("wait_for_word", folder=folder, progress=tell)))
    async with asyncio.timeout(DEATH_SECONDS * 5):
        for _ in folders:
            await begun.acquire()
    for folder in folders:
        await asyncio.to_thread((folder / "word").write_text, folder.name, encoding="utf-8")
    outcomes = await asyncio.gather(*attempts)
    assert [outcome.measurements["word"] for outcome in outcomes] == [folder.name for folder in folders]


async def test_one_attempts_crash_and_hang_are_nothing_to_its_neighbours(
    host: EngineHost, run: Any, tmp_path: Path
) -> None:
    acts = ["segfault", "make", "spin_in_c", "make", "exit_at_once", "make", "raise_value", "make"]
    folders = [tmp_path / f"{number}" for number in range(8)]
    for folder in folders:
        folder.mkdir()
    outcomes = await asyncio.gather(
        *(
            run(act, folder=folder, timeout_seconds=1.0, text="x")
            for act, folder in zip(acts, folders, strict=True)
        )
    )
    codes = [outcome.error.code if isinstance(outcome, Broke) else None for outcome in outcomes]
    assert codes == ["KERNEL_CRASHED", None, "KERNEL_TIMEOUT", None, "KERNEL_CRASHED", None, "INTERNAL", None]
    assert len(zygote_pids()) == 1


async def test_a_zygote_killed_in_mid_run_loses_the_attempt_and_nothing_more(
    host: EngineHost, run: Any, watcher: Any
) -> None:
    async with running(run("grandchild", then="wait")) as attempt:
        await watcher.reached("grandchild")
        (first,) = zygote_pids()
        os.kill(first, signal.SIGKILL)
        outcome = await asyncio.wait_for(attempt, DEATH_SECONDS)
    assert isinstance(outcome, Broke)
    assert (outcome.error.code, outcome.error.retryable) == ("WORKER_LOST", True)
    assert watcher.processes.gone("begun")
    assert watcher.processes.gone("grandchild", DEATH_SECONDS)
    assert isinstance(await run("make", text="x"), Made)
    (second,) = zygote_pids()
    assert second != first


async def test_a_zygote_that_died_idle_is_replaced_unnoticed(
    host: EngineHost, run: Any, processes: Any
) -> None:
    await run("make", text="x")
    (first,) = zygote_pids()
    processes.hold("zygote", first)
    os.kill(first, signal.SIGKILL)
    assert processes.gone("zygote", DEATH_SECONDS)
    assert isinstance(await run("make", text="x"), Made)


async def test_a_zygote_dies_of_no_signal_that_is_meant_for_the_server(host: EngineHost, run: Any) -> None:
    await run("make", text="x")
    (zygote,) = zygote_pids()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(zygote, number)
    assert isinstance(await run("make", text="x"), Made)
    assert zygote_pids() == [zygote]


@pytest.mark.parametrize("end", ["cancel", "time limit"])
async def test_a_zygote_that_does_not_answer_dies_with_the_attempt(
    host: EngineHost, run: Any, watcher: Any, end: str
) -> None:
    async with running(run("spin_in_c", timeout_seconds=0.5)) as attempt:
        await watcher.reached("begun")
        (stuck,) = zygote_pids()
        watcher.processes.hold("zygote", stuck)
        os.kill(stuck, signal.SIGSTOP)
        if end == "cancel":
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(attempt, DEATH_SECONDS)
        else:
            outcome = await asyncio.wait_for(attempt, DEATH_SECONDS)
            assert outcome.error.code == "KERNEL_TIMEOUT"
    assert watcher.processes.gone("begun")
    assert watcher.processes.gone("zygote")


async def test_cancelling_an_attempt_that_waits_for_a_stuck_zygote_is_bounded_too(
    host: EngineHost, run: Any, processes: Any
) -> None:
    await run("make", text="x")
    (stuck,) = zygote_pids()
    processes.hold("zygote", stuck)
    os.kill(stuck, signal.SIGSTOP)
    async with running(run("make", text="x")) as attempt:
        await asyncio.wait({attempt}, timeout=0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(attempt, DEATH_SECONDS)
    assert processes.gone("zygote")


async def test_a_zygote_that_does_not_fork_is_replaced(processes: Any, make_order: Any) -> None:
    host = EngineHost(extra_path=[RUNNERS], fork_seconds=0.3)
    await host.run(make_order("make", text="x"), ignore)
    (stuck,) = zygote_pids()
    processes.hold("zygote", stuck)
    os.kill(stuck, signal.SIGSTOP)
    for _ in range(2):  # the first child was forked ahead
        made = await asyncio.wait_for(host.run(make_order("make", text="x"), ignore), DEATH_SECONDS)
        assert isinstance(made, Made)
    assert processes.gone("zygote")
    await host.close()


async def test_closing_ends_everything(watcher: Any, host: EngineHost, run: Any) -> None:
    async with running(run("grandchild", then="wait")) as attempt:
        await watcher.reached("grandchild")
        watcher.processes.hold("zygote", *zygote_pids())
        await host.close()
        outcome = await attempt
    assert outcome.error.code == "WORKER_LOST"
    assert zygote_pids() == []
    assert watcher.processes.gone("zygote")
    assert watcher.processes.gone("begun")
    assert watcher.processes.gone("grandchild", DEATH_SECONDS)


async def test_closing_does_not_wait_for_a_zygote_that_does_not_answer(
    host: EngineHost, run: Any, processes: Any
) -> None:
    await run("make", text="x")
    (stuck,) = zygote_pids()
    processes.hold("zygote", stuck)
    os.kill(stuck, signal.SIGSTOP)
    await asyncio.wait_for(host.close(), DEATH_SECONDS)
    assert processes.gone("zygote")


async def test_no_timer_is_left_of_an_attempt_that_ended(host: EngineHost, run: Any) -> None:
    await run("make", text="x")
    await host.close()  # the child may still be on its way out: until then it has a time limit
    timers = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009 - asyncio's own, and private
    pending = {timer._callback.__qualname__ for timer in timers if not timer.cancelled()}
    assert not {name for name in pending if name.startswith(("Watch.", "Attempt."))}


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server in another process, to be killed."""
    arguments = [sys.executable, str(HERE / "doomed_server.py"), request.param, str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
        yield server
        server.kill()


def hold_until(server: subprocess.Popen[str], last: str, processes: Any) -> None:
    assert server.stdout is not None
    for line in server.stdout:
        name, pid = line.split()
        processes.hold(name, int(pid))
        if name == last:
            break


@pytest.mark.parametrize("server", ["wild_engine"], indirect=True)
def test_nothing_outlives_a_server_that_is_killed(server: subprocess.Popen[str], processes: Any) -> None:
    hold_until(server, "grandchild", processes)
    server.kill()
    assert processes.gone("zygote", DEATH_SECONDS)
    assert processes.gone("begun", DEATH_SECONDS)
    assert processes.gone("grandchild", DEATH_SECONDS)


@pytest.mark.parametrize("server", ["wild_engine"], indirect=True)
def test_a_child_dies_with_its_zygote_without_anyones_help(
    server: subprocess.Popen[str], processes: Any
) -> None:
    hold_until(server, "grandchild", processes)
    server.send_signal(signal.SIGSTOP)
    signal.pidfd_send_signal(processes.pidfds["zygote"], signal.SIGKILL)
    assert processes.gone("begun", DEATH_SECONDS)
    signal.pidfd_send_signal(processes.pidfds["grandchild"], signal.SIGKILL)  # this one needs the host


@pytest.mark.parametrize("server", ["endless_load"], indirect=True)
def test_a_zygote_that_still_loads_does_not_outlive_the_server(
    server: subprocess.Popen[str], processes: Any
) -> None:
    hold_until(server, "zygote", processes)
    server.kill()
    assert processes.gone("zygote", DEATH_SECONDS)
