"""A doorbell within one process."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tempa.core.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.core.clock import Clock


class InProcessWake:
    """`Wake` for all event loops of this process. `ring` may be called from any thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._ears: dict[str, set[InProcessBell]] = {}

    def ring(self, *topics: str) -> None:
        """Wake everyone who listens to any of `topics`. Nobody listening: nothing happens."""
        for bell in {bell for topic in topics for bell in tuple(self._ears.get(topic, ()))}:
            bell.ring()

    @property
    def topics(self) -> tuple[str, ...]:
        """What somebody listens to."""
        return tuple(self._ears)

    @contextmanager
    def listen(self, *topics: str) -> Iterator[InProcessBell]:
        """An ear at `topics`, for the running loop; from now on no ring is missed."""
        bell = InProcessBell(self._clock)
        for topic in topics:
            self._ears.setdefault(topic, set()).add(bell)
        try:
            yield bell
        finally:
            for topic in topics:
                self._forget(topic, bell)

    def _forget(self, topic: str, bell: InProcessBell) -> None:
        ears = self._ears[topic]
        ears.discard(bell)
        if not ears:  # one topic a job: they would pile up
            del self._ears[topic]


class InProcessBell:
    """One listener's ear. For one waiting task at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Be heard, now or at the next wait."""
        if _running_loop() is self._loop:
            self._hear()
            return
        with suppress(RuntimeError):  # the listener's loop is closed, and nobody listens any more
            self._loop.call_soon_threadsafe(self._hear)

    async def wait(self, timeout_seconds: float) -> bool:
        """True as soon as it was rung since the last wait, False when the time has passed."""
        if not self._rung:
            await self._hark(timeout_seconds)
        rung, self._rung = self._rung, False
        return rung

    async def _hark(self, timeout_seconds: float) -> None:
        waiter = self._waiter = self._loop.create_future()
        timer = asyncio.ensure_future(self._clock.sleep(timeout_seconds))
        timer.add_done_callback(lambda _: _release(waiter))
        try:
            await waiter
        finally:
            if self._waiter is waiter:  # else the next one waits already, and this one was cancelled
                self._waiter = None
            timer.cancel()

    def _hear(self) -> None:
        self._rung = True
        if self._waiter is not None:
            _release(self._waiter)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
