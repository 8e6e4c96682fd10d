"""Contract of `Wake`: a ring is heard by all who listen, and never lost between two waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.core.work import Wake
    from tempa.testing.clock import ManualClock

_PATIENCE_SECONDS = 10.0  # a bound for what comes at once


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeBench:
    """`clock` is the one the bells wait by."""

    wake: Wake
    clock: ManualClock


class WakeContract:
    """Asks for the fixture `bench`, a WakeBench."""

    async def test_a_ring_ends_a_wait(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            waiting = asyncio.create_task(bell.wait(60.0))
            await bench.clock.until_asleep()
            bench.wake.ring("a")

            assert await asyncio.wait_for(waiting, _PATIENCE_SECONDS)

    async def test_a_ring_between_two_waits_is_not_lost(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            bench.wake.ring("a")

            assert await asyncio.wait_for(bell.wait(60.0), _PATIENCE_SECONDS)

    async def test_rings_are_told_once_however_many_they_were(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            bench.wake.ring("a")
            bench.wake.ring("a")

            assert await asyncio.wait_for(bell.wait(60.0), _PATIENCE_SECONDS)
            assert not await bell.wait(0)

    async def test_a_wait_ends_when_its_time_has_passed(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            waiting = asyncio.create_task(bell.wait(60.0))
            await bench.clock.until_asleep()
            bench.clock.advance(59.999)
            early = waiting.done()
            bench.clock.advance(0.001)

            assert not await asyncio.wait_for(waiting, _PATIENCE_SECONDS)
            assert not early

    async def test_a_bell_hears_its_topics_and_no_others(self, bench: WakeBench) -> None:
        with bench.wake.listen("a", "b") as bell:
            bench.wake.ring("c")
            deaf = await bell.wait(0)
            bench.wake.ring("c", "b")

            assert not deaf
            assert await bell.wait(0)

    async def test_everyone_who_listens_hears(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as first, bench.wake.listen("a", "b") as second:
            bench.wake.ring("a")

            assert [await first.wait(0), await second.wait(0)] == [True, True]

    async def test_who_has_left_is_not_rung(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            pass
        bench.wake.ring("a")

        assert not await bell.wait(0)

    async def test_a_wait_that_is_cancelled_loses_no_ring(self, bench: WakeBench) -> None:
        """A role waits for its bell or for something else, whichever comes first."""
        with bench.wake.listen("a") as bell:
            waiting = asyncio.create_task(bell.wait(60.0))
            await bench.clock.until_asleep()
            waiting.cancel()
            bench.wake.ring("a")
            next_wait = asyncio.create_task(bell.wait(60.0))

            assert await asyncio.wait_for(next_wait, _PATIENCE_SECONDS)

    async def test_a_new_wait_hears_although_a_cancelled_one_still_ends(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            waiting = asyncio.create_task(bell.wait(60.0))
            await bench.clock.until_asleep()
            next_wait = asyncio.create_task(bell.wait(60.0))
            waiting.cancel()
            await asyncio.wait([waiting])
            await bench.clock.until_asleep()
            bench.wake.ring("a")

            assert await asyncio.wait_for(next_wait, _PATIENCE_SECONDS)

    async def test_a_ring_from_another_thread_is_heard(self, bench: WakeBench) -> None:
        with bench.wake.listen("a") as bell:
            waiting = asyncio.create_task(bell.wait(60.0))
            await bench.clock.until_asleep()
            await asyncio.to_thread(bench.wake.ring, "a")

            assert await asyncio.wait_for(waiting, _PATIENCE_SECONDS)
