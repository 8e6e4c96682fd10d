"""A clock that stands still until it is told to move."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

from tempa.core.clock import from_ms, to_ms

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """`Clock` whose time passes by `advance` only. Sleepers wake in the order they are due.

    For one event loop; `now` and `monotonic` may be read from any thread.
    """

    def __init__(self, start: datetime = START) -> None:
        self._wall_ms = to_ms(start)
        self._elapsed_ms = 0
        self._order = itertools.count()  # who fell asleep first wakes first
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()

    def now(self) -> datetime:
        """The wall clock."""
        return from_ms(self._wall_ms)

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._elapsed_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has gone that far; at once if there is nothing to wait for."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker = asyncio.get_running_loop().create_future()
        due_ms = self._elapsed_ms + round(seconds * 1000)
        heapq.heappush(self._sleepers, (due_ms, next(self._order), waker))
        self._fell_asleep.set()
        await waker

    def advance(self, seconds: float) -> None:
        """Let time pass. Sleepers that are due go on when the caller next waits, in order."""
        elapsed_ms = self._elapsed_ms + round(seconds * 1000)
        self._wall_ms += elapsed_ms - self._elapsed_ms
        self._elapsed_ms = elapsed_ms
        while self._sleepers and self._sleepers[0][0] <= elapsed_ms:
            _, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)

    def jump(self, delta: timedelta) -> None:
        """Set the wall clock, as an operator or NTP does. Durations and sleepers take no notice."""
        self._wall_ms += delta // timedelta(milliseconds=1)

    async def until_asleep(self, count: int = 1) -> None:
        """Wait until at least `count` tasks sleep: the signal that it is worth advancing."""
        while sum(not waker.done() for _, _, waker in self._sleepers) < count:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()
