"""A server that runs one attempt, to be killed. Prints the numbers of its processes, one a line."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Order, RunLimits


def _tell(stage: str, fraction: float | None) -> None:
    sys.stdout.write(f"{stage}\n")
    sys.stdout.flush()


async def _serve(module: str, folder: Path) -> None:
    host = EngineHost(extra_path=[Path(__file__).parent / "runners"])
    work = {"do": "grandchild", "then": "wait"}
    limits = RunLimits(timeout_seconds=60, memory_bytes=1 << 30)
    attempt = asyncio.create_task(host.run(Order("wild", module, "fork", work, folder, limits), _tell))
    await asyncio.wait({attempt}, timeout=0)  # let it start its zygote
    _tell(f"zygote {_only_child()}", None)
    await attempt


def _only_child() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").strip()


asyncio.run(_serve(sys.argv[1], Path(sys.argv[2])))
