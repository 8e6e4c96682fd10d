from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tempa.testing.clock import ManualClock


def test_time_stands_still_until_it_is_told_to_move() -> None:
    clock = ManualClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    before = (clock.now(), clock.monotonic(), clock.now(), clock.monotonic())
    clock.advance(90.25)

    assert before == (datetime(2026, 5, 1, 12, tzinfo=UTC), 0.0) * 2
    assert clock.now() == datetime(2026, 5, 1, 12, 1, 30, 250_000, tzinfo=UTC)
    assert clock.monotonic() == 90.25


def test_a_jump_moves_the_wall_clock_only() -> None:
    clock = ManualClock()
    start = clock.now()
    clock.jump(timedelta(hours=-1))

    assert clock.now() == start - timedelta(hours=1)
    assert clock.monotonic() == 0.0


async def test_sleepers_wake_in_the_order_they_are_due() -> None:
    clock, woken = ManualClock(), []

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0)):
            group.create_task(nap(name, seconds))
        await clock.until_asleep(3)
        clock.advance(0.999)
        still_asleep = list(woken)
        clock.advance(5.0)

    assert still_asleep == []
    assert woken == ["early", "also early", "late"]


async def test_who_has_nothing_to_wait_for_does_not_wait() -> None:
    clock = ManualClock()

    await asyncio.wait_for(clock.sleep(0.0), 10)
    await asyncio.wait_for(clock.sleep(-1.0), 10)


async def test_a_cancelled_sleeper_is_not_waited_for() -> None:
    clock = ManualClock()
    nap = asyncio.create_task(clock.sleep(1.0))
    await clock.until_asleep()
    nap.cancel()
    await asyncio.wait([nap])
    waiting = asyncio.create_task(clock.until_asleep())
    await asyncio.wait([waiting], timeout=0)

    assert not waiting.done()
    clock.advance(2.0)
    other = asyncio.create_task(clock.sleep(1.0))
    await asyncio.wait_for(waiting, 10)
    clock.advance(1.0)
    await asyncio.wait_for(other, 10)
