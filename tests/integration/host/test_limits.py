from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tempa.jobs.ports import Broke, Made
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024
# From the moment a limit is crossed to the outcome. The product promises 300 ms at p95.
LATE_SECONDS = 0.3


@pytest.mark.parametrize("act", ["spin_in_c", "backtrack", "ignore_sigterm"])
async def test_a_hung_kernel_is_killed_at_its_time_limit(run: Any, watcher: Any, act: str) -> None:
    start = time.monotonic()
    outcome = await run(act, timeout_seconds=0.4)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "KERNEL_TIMEOUT"
    assert outcome.error.retryable is False
    assert outcome.error.detail == {"timeout_seconds": 0.4}
    assert 400 <= outcome.compute_time_ms <= 400 + 1000 * LATE_SECONDS
    assert time.monotonic() - start >= 0.4
    assert watcher.processes.gone("begun")


async def test_memory_without_end_is_stopped_at_the_limit(run: Any, watcher: Any, tmp_path: Path) -> None:
    limit = 128 * MIB
    outcome = await run("eat_memory", memory_bytes=limit, limit_bytes=limit)
    late = time.monotonic() - float((tmp_path / "crossed_at").read_text(encoding="ascii"))
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "OUT_OF_MEMORY"
    assert outcome.error.retryable is False
    assert outcome.error.detail == {"memory_bytes": limit, "peak_rss_bytes": outcome.peak_rss_bytes}
    assert outcome.peak_rss_bytes > limit
    assert late <= LATE_SECONDS
    assert watcher.processes.gone("begun")


async def test_memory_below_the_limit_is_let_be(run: Any) -> None:
    made = await run("stay_below", bytes=100 * MIB, memory_bytes=300 * MIB)
    assert isinstance(made, Made)
    assert 200 * MIB < made.peak_rss_bytes < 300 * MIB


async def test_an_abort_at_the_end_of_the_address_space_is_out_of_memory(run: Any) -> None:
    outcome = await run("reserve_address_space", memory_bytes=128 * MIB)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "OUT_OF_MEMORY"
    assert outcome.peak_rss_bytes < 128 * MIB  # so it was the backstop, not the watch


async def test_an_abort_far_from_the_limits_is_a_crash(run: Any) -> None:
    outcome = await run("kill_self", signal="SIGABRT", memory_bytes=128 * MIB)
    assert outcome.error.code == "KERNEL_CRASHED"


async def test_a_memory_error_is_out_of_memory(run: Any) -> None:
    outcome = await run("no_memory", memory_bytes=128 * MIB)
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "OUT_OF_MEMORY"
    assert outcome.error.detail == {"memory_bytes": 128 * MIB, "peak_rss_bytes": outcome.peak_rss_bytes}


async def test_a_child_is_confined(run: Any, tmp_path: Path) -> None:
    seen = (await run("look_around", timeout_seconds=7.0, memory_bytes=256 * MIB)).measurements
    limits = seen["limits"]
    assert limits["RLIMIT_CORE"] == [0, 0]
    assert limits["RLIMIT_FSIZE"] == [4 << 30, 4 << 30]
    assert 7 < limits["RLIMIT_CPU"][0] < limits["RLIMIT_CPU"][1]
    assert limits["RLIMIT_AS"][0] > 2 * 256 * MIB
    assert seen["folder"] == str(tmp_path)
    assert seen["group"] is True
    assert seen["oom_score"] == "1000"
    assert seen["threads_variable"] == "1"
    assert seen["handled"] == ["SIGPIPE", "SIGXFSZ"]  # ignored, as Python has them
    assert [seen["zygote"]] == zygote_pids()
    assert seen["niceness"] > os.nice(0)  # the server answers before kernels take the cores


async def test_an_engine_does_not_see_the_servers_settings(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPA_LINKS__KEY", "00" * 32)
    assert (await run("look_around")).measurements["settings"] == []


async def test_a_signal_that_the_server_holds_back_reaches_the_child(run: Any) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        made = await run("look_around")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
    assert made.measurements["blocked"] == []


async def test_a_child_holds_no_descriptor_but_its_own(run: Any, watcher: Any) -> None:
    neighbour = asyncio.create_task(run("spin_in_c"))
    await watcher.reached("begun")
    seen = (await run("look_around")).measurements["descriptors"]
    neighbour.cancel()
    await asyncio.wait({neighbour})
    assert seen.pop("0") == "/dev/null"
    assert seen.pop("1") == seen.pop("2")
    ((_, channel),) = seen.items()
    assert channel.startswith("socket:")


async def test_a_zygote_does_not_bring_the_servers_half_along(run: Any) -> None:
    assert (await run("look_around")).measurements["asyncio"] is False
