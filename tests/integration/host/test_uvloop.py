"""The server runs on uvloop, the other tests on asyncio's own loop: the host must do on both."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Broke, Made
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from tempa.jobs.ports import Order

RUNNERS = Path(__file__).parent / "runners"
MIB = 1024 * 1024


def test_the_host_does_on_uvloop_what_it_does_on_asyncio(make_order: Any, watcher: Any) -> None:
    async def scenario() -> list[str]:
        host = EngineHost(extra_path=[RUNNERS])

        async def code(order: Order) -> str:
            outcome = await host.run(order, watcher)
            return outcome.error.code if isinstance(outcome, Broke) else "made"

        codes = [
            await code(make_order("make", text="x")),
            await code(make_order("echo", text="ab" * MIB)),
            await code(make_order("segfault")),
            await code(make_order("spin_in_c", timeout_seconds=0.2)),
            await code(make_order("eat_memory", memory_bytes=64 * MIB, limit_bytes=64 * MIB)),
            await code(make_order("make", module="no_such_engine")),
        ]
        lost = asyncio.create_task(code(make_order("ignore_sigterm")))
        await watcher.reached("deaf")
        os.kill(zygote_pids()[0], signal.SIGKILL)
        codes.append(await lost)
        canceled = asyncio.create_task(host.run(make_order("grandchild", then="wait"), watcher))
        await watcher.reached("grandchild")
        canceled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await canceled
        assert watcher.processes.gone("begun")
        assert isinstance(await host.run(make_order("make", text="x"), watcher), Made)
        await host.close()
        return codes

    assert uvloop.run(scenario()) == [
        "made",
        "made",
        "KERNEL_CRASHED",
        "KERNEL_TIMEOUT",
        "OUT_OF_MEMORY",
        "ENGINE_UNAVAILABLE",
        "WORKER_LOST",
    ]
