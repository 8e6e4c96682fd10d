"""The life cycle *resident*: one process keeps the model, and does one attempt at a time."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke, Made, Order, RunLimits
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

HERE = Path(__file__).parent
PATIENCE_SECONDS = 10.0
DEATH_SECONDS = 2.0

Run = Any


@pytest.fixture
async def hosts() -> AsyncIterator[Callable[..., EngineHost]]:
    made: list[EngineHost] = []

    def make(**times: Any) -> EngineHost:
        made.append(EngineHost(extra_path=[HERE / "runners"], reap_seconds=1.0, **times))
        return made[-1]

    yield make
    for host in made:
        await host.close()


@pytest.fixture
def run(hosts: Callable[..., EngineHost], watcher: Any, tmp_path: Path) -> Run:
    """Run one act of the resident engine, all on one host unless another is given."""
    usual = hosts()

    async def run(do: str, host: EngineHost | None = None, **given: Any) -> Made | Broke:
        settings = {"timeout_seconds": 20.0, "memory_bytes": 1 << 30, "python": None, "options": {}} | given
        work = {"do": do} | {name: value for name, value in given.items() if name in WORDS}
        order = Order(
            engine="resident",
            module="resident_engine",
            life_cycle="resident",
            work=work,
            folder=tmp_path,
            limits=RunLimits(settings["timeout_seconds"], settings["memory_bytes"]),
            python=settings["python"],
            options=settings["options"],
        )
        return await (host or usual).run(order, watcher)

    return run


WORDS = {"n", "pipe", "code", "retryable", "mib"}


def made(outcome: Made | Broke) -> dict[str, Any]:
    assert isinstance(outcome, Made), outcome
    return dict(outcome.measurements)


def code(outcome: Made | Broke) -> str:
    assert isinstance(outcome, Broke), outcome
    return outcome.error.code


async def test_one_process_does_one_attempt_after_the_other(run: Run) -> None:
    first, second = made(await run("tell", n=1)), made(await run("tell", n=2))
    assert first["pid"] == second["pid"]
    assert second["loads"] == 1


async def test_an_attempt_works_in_its_folder(run: Run, tmp_path: Path) -> None:
    assert made(await run("tell", n=1))["cwd"] == str(tmp_path)


async def test_the_operators_options_reach_the_engine(run: Run) -> None:
    assert made(await run("tell", n=1, options={"device": "cpu"}))["options"] == {"device": "cpu"}


async def test_the_host_has_one_process_for_equal_options(run: Run) -> None:
    await run("tell", n=1, options={"a": 1, "b": 2})
    await run("tell", n=1, options={"b": 2, "a": 1})
    assert len(zygote_pids()) == 1


async def test_a_second_attempt_waits_for_the_first(run: Run, watcher: Any, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    first = asyncio.create_task(run("wait", pipe=str(pipe)))
    await watcher.reached("begun")
    second = asyncio.create_task(run("tell", n=2))
    await watcher.reached("waiting")
    assert not second.done()
    pipe.write_bytes(b"")
    assert made(await first)["pid"] == made(await second)["pid"]


async def test_one_that_waits_can_be_canceled_and_costs_the_other_nothing(
    run: Run, watcher: Any, tmp_path: Path
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    first = asyncio.create_task(run("wait", pipe=str(pipe)))
    await watcher.reached("begun")
    second = asyncio.create_task(run("tell", n=2))
    await watcher.reached("waiting")
    second.cancel()
    await asyncio.wait({second})
    pipe.write_bytes(b"")
    assert isinstance(await first, Made)


async def test_loading_is_told_once(run: Run, watcher: Any) -> None:
    await run("tell", n=1)
    await run("tell", n=2)
    assert [name for name, _ in watcher.stages].count("loading") == 1


async def test_a_canceled_attempt_is_gone_and_the_next_has_a_process_of_its_own(
    run: Run, watcher: Any
) -> None:
    attempt = asyncio.create_task(run("hold"))
    await watcher.reached("begun")
    (held,) = zygote_pids()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert watcher.processes.gone("begun")
    assert made(await run("tell", n=1))["pid"] != held


async def test_time_runs_out_in_the_attempt_and_not_in_the_load(run: Run, tmp_path: Path) -> None:
    assert code(await run("hold", timeout_seconds=0.3)) == "KERNEL_TIMEOUT"
    assert isinstance(await run("tell", n=1, timeout_seconds=5.0), Made)


async def test_what_passes_the_memory_limit_is_stopped(run: Run) -> None:
    outcome = await run("eat", memory_bytes=200 << 20)
    assert code(outcome) == "OUT_OF_MEMORY"
    assert isinstance(await run("tell", n=1), Made)


async def test_a_crash_is_no_lack_of_memory_however_large_the_server_is(run: Run) -> None:
    """A process begins with the peak of the one that started it: 600 MB here, and its own limit is 500."""
    ballast = bytearray(600 << 20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    outcome = await run("fall", n=1, memory_bytes=500 << 20)
    assert len(ballast) == 600 << 20
    assert code(outcome) == "KERNEL_CRASHED"


async def test_a_crash_is_told_with_the_attempts_own_output(run: Run) -> None:
    await run("tell", n=1)
    outcome = await run("fall", n=2)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "KERNEL_CRASHED"
    assert outcome.error.detail == {"signal": "SIGSEGV", "kernel": "last words of 2"}
    assert isinstance(await run("tell", n=3), Made)


async def test_a_named_failure_keeps_the_process(run: Run) -> None:
    first = made(await run("tell", n=1))
    assert code(await run("raise", code="NO_FOREGROUND", retryable=False)) == "NO_FOREGROUND"
    assert made(await run("tell", n=2))["pid"] == first["pid"]


@pytest.mark.parametrize("retryable", [True, False])
async def test_out_of_memory_says_its_case(run: Run, *, retryable: bool) -> None:
    outcome = await run("raise", code="CUDA_OUT_OF_MEMORY", retryable=retryable)
    assert isinstance(outcome, Broke)
    assert outcome.error.retryable is retryable
    assert outcome.error.detail == {"peak_bytes": 7}


@pytest.mark.parametrize("spoiling", ["CUDA_OUT_OF_MEMORY", "OUT_OF_MEMORY", "DEVICE_UNAVAILABLE"])
async def test_a_process_that_lacked_memory_or_its_device_is_replaced(run: Run, spoiling: str) -> None:
    first = made(await run("tell", n=1))
    await run("raise", code=spoiling, retryable=False)
    assert made(await run("tell", n=2))["pid"] != first["pid"]
    assert len(zygote_pids()) == 1


async def test_a_process_with_a_fault_is_replaced(run: Run) -> None:
    first = made(await run("tell", n=1))
    assert code(await run("break")) == "INTERNAL"
    assert made(await run("tell", n=2))["pid"] != first["pid"]


async def test_the_peak_is_the_attempts_and_not_the_process_s(run: Run) -> None:
    large, small = await run("swell", mib=200), await run("tell", n=1)
    assert large.peak_rss_bytes > 200 << 20
    assert small.peak_rss_bytes < 100 << 20


async def test_nor_is_it_the_servers(run: Run) -> None:
    """A child that is started by exec inherits its parent's peak in getrusage."""
    ours = bytearray(b"x" * (300 << 20))
    outcome = await run("tell", n=1)
    assert len(ours) > outcome.peak_rss_bytes > 0


async def test_an_engine_that_cannot_load_says_why_by_its_code(run: Run) -> None:
    outcome = await run("tell", n=1, options={"code": "MODEL_CHECKSUM_MISMATCH"})
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "MODEL_CHECKSUM_MISMATCH"
    assert outcome.error.message == "The model's files are not the pinned ones."
    assert not outcome.error.retryable


async def test_an_interpreter_that_is_not_there(run: Run) -> None:
    assert code(await run("tell", n=1, python="/no/python")) == "ENGINE_UNAVAILABLE"


async def test_an_interpreter_that_cannot_run_it(run: Run, tmp_path: Path) -> None:
    (poor := tmp_path / "poor").write_text("#!/bin/sh\necho no torch here\nexit 3\n", encoding="ascii")
    poor.chmod(0o755)
    outcome = await run("tell", n=1, python=str(poor))
    assert code(outcome) == "ENGINE_UNAVAILABLE"
    assert isinstance(outcome, Broke)
    assert "no torch here" in outcome.error.detail["kernel"]


async def test_a_load_that_takes_too_long_is_given_up(run: Run, hosts: Any, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    outcome = await run("tell", host=hosts(model_seconds=0.5), n=1, options={"pipe": str(pipe)})
    assert code(outcome) == "ENGINE_UNAVAILABLE"
    assert zygote_pids() == []


async def test_an_idle_process_gives_its_memory_back(run: Run, hosts: Any) -> None:
    host = hosts(idle_seconds=0.01)
    pid = made(await run("tell", host=host, n=1))["pid"]
    pidfd = os.pidfd_open(pid)
    gone = await asyncio.to_thread(lambda: select.select([pidfd], [], [], PATIENCE_SECONDS)[0])
    os.close(pidfd)
    assert gone
    assert made(await run("tell", host=host, n=2))["pid"] != pid


async def test_closing_ends_what_runs_and_what_waits(run: Run, hosts: Any, watcher: Any) -> None:
    host = hosts()
    first = asyncio.create_task(run("hold", host=host))
    await watcher.reached("begun")
    second = asyncio.create_task(run("tell", host=host, n=2))
    await watcher.reached("waiting")
    await host.close()
    assert [code(await first), code(await second)] == ["WORKER_LOST", "WORKER_LOST"]
    assert zygote_pids() == []
    assert code(await run("tell", host=host, n=3)) == "WORKER_LOST"


def test_it_dies_with_its_host(processes: Any, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    server = subprocess.Popen(
        [sys.executable, str(HERE / "doomed_resident.py"), str(tmp_path), str(pipe)], stdout=subprocess.PIPE
    )
    assert server.stdout
    with server.stdout as said:
        name, pid = said.readline().decode().split()
        processes.hold(name, int(pid))
        server.kill()
        server.wait(PATIENCE_SECONDS)
    assert name == "begun"
    assert processes.gone(name, DEATH_SECONDS)
