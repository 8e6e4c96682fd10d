from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke
from tests.integration.host.zygotes import zygote_pids

RUNNERS = Path(__file__).parent / "runners"


def ignore(stage: str, fraction: float | None) -> None:
    pass


async def test_nothing_is_started_before_it_is_needed(host: EngineHost, run: Any) -> None:
    assert zygote_pids() == []
    await run("make", text="x")
    assert len(zygote_pids()) == 1


async def test_attempts_that_come_together_load_the_engine_once(run: Any) -> None:
    first, second = await asyncio.gather(run("look_around"), run("look_around"))
    zygotes = [outcome.measurements["zygote"] for outcome in (first, second, await run("look_around"))]
    assert zygotes == 3 * zygote_pids()


async def test_each_engine_has_its_own_zygote(run: Any) -> None:
    outcomes = await asyncio.gather(run("look_around"), run("", module="late_thread"))
    zygotes = [outcome.measurements["zygote"] for outcome in outcomes]
    assert sorted(zygotes) == zygote_pids()
    assert zygotes[0] != zygotes[1]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("no_such_engine", "ModuleNotFoundError: No module named 'no_such_engine'"),
        ("failing_load", "ImportError: libforge.so.7: cannot open shared object file"),
        ("crashing_load", "its process ended with -11 while it was loaded"),
        ("threaded_load", "ThreadStartedError: the engine has 2 threads before the fork"),
    ],
)
async def test_an_engine_that_cannot_be_loaded_is_unavailable(
    host: EngineHost, run: Any, module: str, reason: str
) -> None:
    outcome = await run("make", module=module)
    assert isinstance(outcome, Broke)
    assert (outcome.error.code, outcome.error.retryable) == ("ENGINE_UNAVAILABLE", False)
    assert outcome.error.detail["kernel"].startswith(reason)
    assert zygote_pids() == []


async def test_loading_has_a_time_limit(processes: Any, make_order: Any) -> None:
    host = EngineHost(extra_path=[RUNNERS], load_seconds=0.5)
    attempt = asyncio.create_task(host.run(make_order("", module="endless_load"), ignore))
    await asyncio.wait({attempt}, timeout=0)
    processes.hold("zygote", *zygote_pids())
    outcome = await attempt
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "ENGINE_UNAVAILABLE"
    assert outcome.error.detail == {"kernel": "not loaded within 0.5 s"}
    assert processes.gone("zygote")
    await host.close()


async def test_closing_does_not_wait_for_an_engine_that_loads(
    host: EngineHost, run: Any, processes: Any
) -> None:
    attempt = asyncio.create_task(run("make", module="endless_load"))
    await asyncio.wait({attempt}, timeout=0)
    processes.hold("zygote", *zygote_pids())
    await asyncio.wait_for(host.close(), 2.0)
    assert processes.gone("zygote")
    assert (await attempt).error.code == "WORKER_LOST"


async def test_a_closed_host_runs_nothing(host: EngineHost, run: Any) -> None:
    await host.close()
    assert (await run("make", text="x")).error.code == "WORKER_LOST"
    assert zygote_pids() == []


async def test_a_kill_while_loading_is_not_the_engines_fault(host: EngineHost, run: Any) -> None:
    attempt = asyncio.create_task(run("make", module="endless_load"))
    await asyncio.wait({attempt}, timeout=0)
    os.kill(zygote_pids()[0], signal.SIGKILL)
    outcome = await asyncio.wait_for(attempt, 2.0)
    assert (outcome.error.code, outcome.error.retryable) == ("WORKER_LOST", True)


async def test_an_interpreter_that_is_not_there_is_an_engine_that_is_not_there(
    tmp_path: Path, make_order: Any
) -> None:
    host = EngineHost(python=str(tmp_path / "python"))
    outcome = await host.run(make_order("make"), lambda stage, fraction: None)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "ENGINE_UNAVAILABLE"
    assert outcome.error.detail == {"kernel": "FileNotFoundError: No such file or directory"}
    await host.close()


async def test_a_thread_in_the_zygote_forbids_forks_and_a_new_zygote_takes_over(
    host: EngineHost, run: Any, processes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setenv("LATE_THREAD_FIFO", str(fifo))
    first = (await run("", module="late_thread")).measurements["zygote"]
    processes.hold("first", first)
    os.kill(first, signal.SIGUSR1)
    assert await asyncio.wait_for(asyncio.to_thread(fifo.read_text, encoding="utf-8"), 5.0) == "started"
    await run("", module="late_thread")  # its child may have been forked before there was a thread
    second = (await run("", module="late_thread")).measurements["zygote"]
    assert second != first
    assert processes.gone("first", 2.0)
    assert zygote_pids() == [second]


async def test_a_spoiled_zygote_lets_its_attempts_finish(
    host: EngineHost, run: Any, watcher: Any, tmp_path: Path, make_order: Any
) -> None:
    os.mkfifo(tmp_path / "word")
    running = asyncio.create_task(run("wait_for_word"))
    await watcher.reached("begun")
    (first,) = zygote_pids()
    watcher.processes.hold("first", first)
    cycle: Any = host._cycles["fork"]
    cycle._current["wild_engine"].retire()
    assert (await run("look_around")).measurements["zygote"] != first
    assert not watcher.processes.gone("first")
    await asyncio.to_thread((tmp_path / "word").write_text, "go", encoding="utf-8")
    made = await running
    assert made.measurements == {"word": "go"}
    assert await asyncio.to_thread(watcher.processes.gone, "first", 2.0)


async def test_an_engine_that_always_starts_threads_is_unavailable(host: EngineHost, run: Any) -> None:
    outcome = await run("make", module="sly_thread")
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "ENGINE_UNAVAILABLE"
    assert outcome.error.detail["kernel"].startswith("ThreadStartedError")
