"""The other end of trial.py: a measured system does one phase at the word "go". Standard library only.

A system is a module with one coroutine function a phase. It is called with the options, prepares, awaits
`go()`, works, and returns its figures. Whatever comes before `go()` is not measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    Phase = Callable[["Options", Callable[[], Awaitable[None]]], Coroutine[Any, Any, Mapping[str, Any]]]

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
    options = Options(json.loads(sys.argv[1]))
    run(_main(phases[options.phase], options))


async def _main(phase: Phase, options: Options) -> None:
    began = 0.0

    async def go() -> None:
        nonlocal began
        _say({"ready": True})
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        began = time.process_time()

    figures = dict(await phase(options, go))
    _say({"cpu_seconds": time.process_time() - began, **figures})


def _say(words: Mapping[str, Any]) -> None:
    print(json.dumps(words), flush=True)


async def by_clients(clients: int, jobs: int, one: Callable[[int], Awaitable[object]]) -> float:
    """Have `clients` do `jobs` calls between them, each its next one when the last is answered.

    Returns the seconds it took.
    """
    numbers = iter(range(jobs))

    async def client() -> None:
        for number in numbers:
            await one(number)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return time.perf_counter() - start


async def every(seconds: float, jobs: int, one: Callable[[int], Awaitable[object]]) -> list[float]:
    """Call at a steady pace, whether or not the last one was answered; when each call was made."""
    first, calls, tasks = time.monotonic() + seconds, [], []
    for number in range(jobs):
        await asyncio.sleep(max(0.0, first + number * seconds - time.monotonic()))
        calls.append(time.monotonic())
        tasks.append(asyncio.ensure_future(one(number)))
    await asyncio.gather(*tasks)
    return calls


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
