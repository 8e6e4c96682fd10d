"""Calls made by so many clients, or at such a pace. Standard library only, as told.py."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def by_clients(clients: int, calls: int, one: Callable[[int], Awaitable[object]]) -> float:
    """Have `clients` do `calls` between them, each its next one when the last is answered.

    Returns the seconds it took.
    """
    numbers = iter(range(calls))

    async def client() -> None:
        for number in numbers:
            await one(number)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return time.perf_counter() - start


async def every(seconds: float, calls: int, one: Callable[[int], Awaitable[object]]) -> list[float]:
    """Call at a steady pace, whether or not the last one was answered; when each call was made."""
    first, made, tasks = time.monotonic() + seconds, [], []
    for number in range(calls):
        await asyncio.sleep(max(0.0, first + number * seconds - time.monotonic()))
        made.append(time.monotonic())
        tasks.append(asyncio.ensure_future(one(number)))
    await asyncio.gather(*tasks)
    return made
