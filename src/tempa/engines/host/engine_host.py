"""The engine host as the jobs slice sees it: `tempa.jobs.ports.Host`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.host.fork import ForkCycle
from tempa.engines.host.launch import Launch
from tempa.engines.host.resident import ResidentCycle
from tempa.jobs.ports import Broke

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tempa.jobs.ports import Host, Made, Order


class EngineHost:
    """Runs attempts in child processes, each engine by its life cycle.

    `python` is the interpreter that has the engines' packages, and `tempa`; an order for a resident
    engine may name another. `extra_path` is put before its import path; the times are told at `Launch`.
    The constructor starts nothing.
    """

    def __init__(
        self,
        python: str = sys.executable,
        *,
        extra_path: Sequence[Path] = (),
        load_seconds: float = 120.0,
        fork_seconds: float = 10.0,
        leave_seconds: float = 2.0,
        reap_seconds: float = 2.0,
        model_seconds: float = 600.0,
        idle_seconds: float | None = None,
    ) -> None:
        launch = Launch(
            python=python,
            extra_path=tuple(extra_path),
            load_seconds=load_seconds,
            fork_seconds=fork_seconds,
            leave_seconds=leave_seconds,
            reap_seconds=reap_seconds,
            model_seconds=model_seconds,
            idle_seconds=idle_seconds,
        )
        self._cycles: Mapping[str, Host] = {"fork": ForkCycle(launch), "resident": ResidentCycle(launch)}

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        """Run one attempt.

        Canceled, it kills the attempt's whole process group and waits until that is gone, at most
        twice `reap_seconds`, before the cancellation goes on.
        """
        cycle = self._cycles.get(order.life_cycle)
        if cycle is None:
            reason = f"this host has no life cycle {order.life_cycle!r}"
            return Broke(TempaError("ENGINE_UNAVAILABLE", detail={"reason": reason}), 0, 0)
        return await cycle.run(order, progress)

    async def close(self) -> None:
        """End every process. Attempts that still run, and later ones, end with WORKER_LOST."""
        for cycle in self._cycles.values():
            await cycle.close()
