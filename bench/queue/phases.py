"""A measured system does one phase at the word "go". Standard library only.

A system is a module with one coroutine function a phase. It is called with the options, prepares, awaits
`go()`, works, and returns its figures. Whatever comes before `go()` is not measured.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from bench.told import obey

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from bench.told import Go

    Phase = Callable[["Options", Go], Coroutine[Any, Any, Mapping[str, Any]]]

PATIENCE_SECONDS = 120.0


class Options:
    """What trial.py asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.phase: str = given["phase"]
        self.url: str = given["url"]
        self.jobs: int = given["jobs"]
        self.clients: int = given["clients"]
        self.every_seconds: float = given["every_seconds"]


def main(
    phases: Mapping[str, Phase], run: Callable[[Coroutine[Any, Any, None]], object] = asyncio.run
) -> None:
    """Do the phase named on the command line."""

    async def work(given: Mapping[str, Any], go: Go) -> Mapping[str, Any]:
        options = Options(given)
        return await phases[options.phase](options, go)

    obey(work, run)


class Starts:
    """When each job began to run."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._at: dict[int, float] = {}
        self._all = asyncio.Event()

    def began(self, number: int) -> None:
        """Job `number` runs, from now."""
        self._at.setdefault(number, time.monotonic())
        if len(self._at) == self._jobs:
            self._all.set()

    async def all(self) -> list[float]:
        """Once every one has begun."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._all.wait()
        return [self._at[number] for number in range(self._jobs)]
