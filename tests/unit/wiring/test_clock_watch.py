"""The watch over the wall clock: told of each jump back once, with its size; of nothing else."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.testing.clock import ManualClock
from tempa.wiring.clock_watch import ClockWatch, catch_up
from tempa.wiring.roles import chosen_roles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

PATIENCE_SECONDS = 10.0


@dataclass
class DueTimes:
    """Notes by how much due times were set back. `away`: so often that fails."""

    behind: int = 0
    away: int = 0
    moved: list[int] = field(default_factory=list)

    async def set_back(self, milliseconds: int) -> int:
        if self.away:
            self.away -= 1
            raise StoreUnavailable
        self.moved.append(milliseconds)
        return 3

    async def behind_milliseconds(self) -> int:
        return self.behind


@asynccontextmanager
async def watching(store: DueTimes, clock: ManualClock) -> AsyncIterator[None]:
    stop = asyncio.Event()
    role = asyncio.create_task(ClockWatch(store=store, clock=clock).run(stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            await clock.until_asleep()
            yield
        finally:
            stop.set()
            await role


async def a_second(clock: ManualClock) -> None:
    """Time passes to the next look; it is over when the watch sleeps again."""
    clock.advance(1.0)
    await clock.until_asleep()


async def after(*steps: float) -> list[int]:
    """By how much due times were set back after these steps of the clock, one a second."""
    clock, store = ManualClock(), DueTimes()
    async with watching(store, clock):
        for step in steps:
            clock.jump(timedelta(seconds=step))
            await a_second(clock)
        await a_second(clock)
    return store.moved


async def test_a_jump_back_is_followed_once() -> None:
    assert await after(-7200) == [7_200_000]


async def test_each_jump_back_is_followed() -> None:
    assert await after(-60, 0, -30.5) == [60_000, 30_500]


async def test_a_jump_forward_is_not() -> None:
    assert await after(7200, 0, 0.4) == []


async def test_the_way_back_from_a_jump_forward_is() -> None:
    assert await after(7200, -7200) == [7_200_000]


@pytest.mark.parametrize(("step", "moved"), [(-1.0, []), (-1.001, [1001])])
async def test_a_small_step_is_tolerated(step: float, moved: list[int]) -> None:
    assert await after(step) == moved


async def test_small_steps_add_up() -> None:
    assert await after(-0.5, -0.5, -0.5, -0.5) == [1500]


async def test_while_the_store_is_away_the_jump_is_kept_in_mind() -> None:
    clock, store = ManualClock(), DueTimes(away=2)
    async with watching(store, clock):
        clock.jump(timedelta(hours=-1))
        for _ in range(4):
            await a_second(clock)

    assert store.moved == [3_600_000]


async def test_a_jump_before_its_first_look_is_seen() -> None:
    clock, store = ManualClock(), DueTimes()
    watch = ClockWatch(store=store, clock=clock)
    clock.jump(timedelta(hours=-1))
    stop = asyncio.Event()
    role = asyncio.create_task(watch.run(stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await clock.until_asleep()
        await a_second(clock)
        stop.set()
        await role

    assert store.moved == [3_600_000]


class Interrupted(ManualClock):
    """While its wall clock is read, the process is stopped for five seconds, once."""

    armed = False

    def now(self) -> datetime:
        wall = super().now()
        if self.armed:
            self.armed = False
            self.advance(5.0)
        return wall


async def test_a_reading_that_was_interrupted_is_no_jump() -> None:
    clock, store = Interrupted(), DueTimes()
    async with watching(store, clock):
        clock.armed = True
        await a_second(clock)
        assert not clock.armed
        await a_second(clock)

    assert store.moved == []


@pytest.mark.parametrize(("behind", "moved"), [(0, []), (1000, []), (1001, [1001]), (7_200_000, [7_200_000])])
async def test_a_start_behind_what_is_on_record_catches_up(behind: int, moved: list[int]) -> None:
    store = DueTimes(behind=behind)

    await catch_up(store)

    assert store.moved == moved


async def test_the_operator_is_told_how_far(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await catch_up(DueTimes(behind=7_200_000))

    assert caplog.messages == [
        "the wall clock was set back by 7200.0 s; due times of 3 jobs and deliveries went with it"
    ]


def test_a_process_runs_what_its_deployment_needs_whatever_its_roles() -> None:
    watch = ClockWatch(store=DueTimes(), clock=ManualClock())
    parts: Any = SimpleNamespace(upkeep=(watch,), payments=None)

    assert chosen_roles(parts, ["api"]) == [watch]
