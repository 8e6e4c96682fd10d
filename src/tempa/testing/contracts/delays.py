"""Contract of `JobStore` for jobs that wait for their retry: a worker can sleep until the first is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.testing.contracts.samples import LANE, retried

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class DelayContract:
    """When a queued job that is not due yet will be."""

    async def test_a_delayed_job_says_how_long_it_still_waits(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, retried(2.5))
        bench.clock.advance(1.0)

        assert await bench.store.next_delayed([LANE]) == 1.5

        bench.clock.advance(1.5)
        assert await bench.store.next_delayed([LANE]) is None
        assert [one.job.id for one in await bench.claim()] == [claimed.job.id]

    async def test_the_first_of_all_lanes_that_are_asked_for_counts(self, bench: StoreBench) -> None:
        for lane, seconds in (("cpu", 5.0), ("gpu", 3.0), ("cpu", 4.0)):
            claimed = await bench.start(lane=lane)
            assert await bench.store.settle(claimed.lease, retried(seconds))

        assert await bench.store.next_delayed(["cpu"]) == 4.0
        assert await bench.store.next_delayed(["cpu", "gpu"]) == 3.0
        assert await bench.store.next_delayed(["other"]) is None

    async def test_what_is_due_or_runs_or_has_ended_is_not_waited_for(self, bench: StoreBench) -> None:
        delayed = await bench.start()
        assert await bench.store.settle(delayed.lease, retried(1.0))
        await bench.admit()
        assert len(await bench.claim()) == 1
        await bench.admit()
        assert await bench.store.cancel(delayed.job.account, delayed.job.id)

        assert await bench.store.next_delayed([LANE]) is None
