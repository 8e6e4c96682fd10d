"""A server whose resident process is in the middle of an attempt, to be killed. Prints its number."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tempa.engines.host.engine_host import EngineHost
from tempa.jobs.ports import Order, RunLimits


def _tell(stage: str, fraction: float | None) -> None:
    if stage.startswith("begun"):
        sys.stdout.write(f"{stage}\n")
        sys.stdout.flush()


async def _serve(folder: Path, pipe: str) -> None:
    host = EngineHost(extra_path=[Path(__file__).parent / "runners"])
    limits = RunLimits(timeout_seconds=60, memory_bytes=1 << 30)
    await host.run(
        Order("r", "resident_engine", "resident", {"do": "wait", "pipe": pipe}, folder, limits), _tell
    )


asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2]))
