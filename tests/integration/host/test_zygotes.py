from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.errors import TempaError
from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke, Made

if TYPE_CHECKING:
    from tempa.engines.host.zygote_handle import ZygoteHealth

RUNNERS = Path(__file__).parent / "runners"


async def test_nothing_is_started_before_it_is_needed(host: EngineHost, run: Any) -> None:
    assert host.health() == ()
    await run("make", text="x")
    (zygote,) = host.health()
    assert zygote.loaded
    assert zygote.running == 0


async def test_warming_loads_the_engine_once(host: EngineHost, run: Any) -> None:
    await asyncio.gather(host.warm("wild_engine"), host.warm("wild_engine"))
    (zygote,) = host.health()
    assert (zygote.module, zygote.loaded) == ("wild_engine", True)
    assert 5_000_000 < zygote.rss_bytes < 100_000_000
    assert isinstance(await run("make", text="x"), Made)
    assert pids(host) == [zygote.pid]


async def test_each_engine_has_its_own_zygote(host: EngineHost) -> None:
    await asyncio.gather(host.warm("wild_engine"), host.warm("late_thread"))
    assert {zygote.module for zygote in host.health()} == {"wild_engine", "late_thread"}
    assert len(set(pids(host))) == 2


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
    assert host.health() == ()
    with pytest.raises(TempaError, match="ENGINE_UNAVAILABLE"):
        await host.warm(module)


async def test_loading_has_a_time_limit(processes: Any) -> None:
    host = EngineHost(extra_path=[RUNNERS], load_seconds=0.5)
    warming = asyncio.create_task(host.warm("endless_load"))
    await asyncio.wait({warming}, timeout=0)
    processes.hold("zygote", host.health()[0].pid)
    with pytest.raises(TempaError) as caught:
        await warming
    assert caught.value.detail == {"kernel": "not loaded within 0.5 s"}
    assert processes.gone("zygote")
    await host.close()


async def test_closing_does_not_wait_for_an_engine_that_loads(
    host: EngineHost, run: Any, processes: Any
) -> None:
    attempt = asyncio.create_task(run("make", module="endless_load"))
    await asyncio.wait({attempt}, timeout=0)
    processes.hold("zygote", host.health()[0].pid)
    await asyncio.wait_for(host.close(), 2.0)
    assert processes.gone("zygote")
    assert (await attempt).error.code == "WORKER_LOST"


async def test_a_closed_host_runs_nothing(host: EngineHost, run: Any) -> None:
    await host.close()
    assert (await run("make", text="x")).error.code == "WORKER_LOST"
    assert host.health() == ()


async def test_a_kill_while_loading_is_not_the_engines_fault(host: EngineHost, run: Any) -> None:
    attempt = asyncio.create_task(run("make", module="endless_load"))
    await asyncio.wait({attempt}, timeout=0)
    os.kill(host.health()[0].pid, signal.SIGKILL)
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
    with pytest.raises(TempaError, match="ENGINE_UNAVAILABLE"):
        await host.warm("wild_engine")
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
    second = (await run("", module="late_thread")).measurements["zygote"]
    assert second != first
    assert processes.gone("first", 2.0)
    assert pids(host) == [second]


async def test_a_spoiled_zygote_lets_its_attempts_finish(
    host: EngineHost, run: Any, watcher: Any, tmp_path: Path, make_order: Any
) -> None:
    os.mkfifo(tmp_path / "word")
    running = asyncio.create_task(run("wait_for_word"))
    await watcher.reached("begun")
    watcher.processes.hold("first", host.health()[0].pid)
    host._fork._current["wild_engine"].retire()
    assert isinstance(await run("make", text="x"), Made)
    assert {zygote.running for zygote in host.health()} == {0, 1}
    await asyncio.to_thread((tmp_path / "word").write_text, "go", encoding="utf-8")
    made = await running
    assert made.measurements == {"word": "go"}
    assert watcher.processes.gone("first", 2.0)


async def test_an_engine_that_always_starts_threads_is_unavailable(host: EngineHost, run: Any) -> None:
    outcome = await run("make", module="sly_thread")
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "ENGINE_UNAVAILABLE"
    assert outcome.error.detail["kernel"].startswith("ThreadStartedError")


def pids(host: EngineHost) -> list[int]:
    zygotes: tuple[ZygoteHealth, ...] = host.health()
    return [zygote.pid for zygote in zygotes]
