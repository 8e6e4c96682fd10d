"""A wall clock that is set back must not make retries wait: what is due by it moves along."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tempa.core.clock import to_ms
from tempa.core.errors import StoreUnavailable
from tempa.core.work import either

if TYPE_CHECKING:
    import asyncio

    from tempa.core.clock import Clock

_logger = logging.getLogger(__name__)

TOLERATED_MS = 1000  # a retry that is late by so much is not worth a write
_READING_SECONDS_MAX = 0.1


class DueTimes(Protocol):
    """What a store that goes by this machine's wall clock can do about a jump of it."""

    async def set_back(self, milliseconds: int) -> int: ...
    async def behind_milliseconds(self) -> int: ...


async def catch_up(store: DueTimes) -> None:
    """At start: the clock was set back while nobody watched, if what is on record lies after now.

    By so much at least. It is seen again by each start until something newer is on record; what waits
    then may come early, which costs one attempt more.
    """
    behind = await store.behind_milliseconds()
    if behind > TOLERATED_MS:
        await _follow(store, behind)


@dataclass(kw_only=True)
class ClockWatch:
    """Compares the wall clock with the monotonic one. Forward is no harm: what is due comes early."""

    store: DueTimes
    clock: Clock
    every_seconds: float = 1.0
    name: str = "clock-watch"
    _lead_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._lead_ms = _lead_ms(self.clock)

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`."""
        while not stop.is_set():
            await either(self.clock.sleep(self.every_seconds), stop.wait())
            try:
                await self._look()
            except StoreUnavailable:
                _logger.warning("the clock was set back, and the store is away; due times wait for it")

    async def _look(self) -> None:
        back = self._lead_ms - _lead_ms(self.clock)
        if 0 < back <= TOLERATED_MS:  # many small steps add up until they count
            return
        if back > TOLERATED_MS:
            await _follow(self.store, back)
        self._lead_ms -= back


async def _follow(store: DueTimes, milliseconds: int) -> None:
    moved = await store.set_back(milliseconds)
    text = "the wall clock was set back by %.1f s; due times of %d jobs and deliveries went with it"
    _logger.warning(text, milliseconds / 1000, moved)


def _lead_ms(clock: Clock) -> int:
    """How far the wall clock is ahead of the monotonic one.

    Read again if it took long: a process that was stopped in between would see a jump that was none.
    """
    while True:
        before, wall, after = clock.monotonic(), to_ms(clock.now()), clock.monotonic()
        if after - before < _READING_SECONDS_MAX:
            return wall - round(after * 1000)
