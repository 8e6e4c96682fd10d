"""Contract of `work_key`: equal work runs one at a time, and the next one finds the result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.core.work import lane_topic
from tempa.jobs.model import Canceled, Status, Usage
from tempa.testing.contracts.samples import (
    COMPLETED,
    ENDINGS,
    LANE,
    OTHER_ACCOUNT,
    RESULT,
    retried,
)

if TYPE_CHECKING:
    from tempa.jobs.model import Claimed, Ending, Job
    from tempa.testing.contracts.bench import StoreBench

KEY = "ab" * 32
OTHER_KEY = "cd" * 32


def ids(claimed: list[Claimed]) -> list[str]:
    """Whose leases they are."""
    return [one.job.id for one in claimed]


class SingleFlightContract:
    """Of an account's jobs with the same `work_key` one is processing at a time."""

    async def test_a_job_keeps_its_work_key(self, bench: StoreBench) -> None:
        alike, alone = await bench.admit(work_key=KEY), await bench.admit()

        assert (alike.work_key, alone.work_key) == (KEY, None)
        assert [one.job.work_key for one in await bench.claim(2)] == [KEY, None]

    async def test_equal_work_waits_while_one_is_processing(self, bench: StoreBench) -> None:
        await bench.start(work_key=KEY)
        waiting = await bench.admit(work_key=KEY, priority=9)

        assert await bench.claim(10) == []
        assert (await bench.reread(waiting)).status is Status.QUEUED

    async def test_it_waits_as_well_while_the_lease_is_out_and_nobody_has_taken_over(
        self, bench: StoreBench
    ) -> None:
        await bench.start(work_key=KEY)
        await bench.admit(work_key=KEY)
        bench.let_lapse()

        assert await bench.claim(10) == []

    async def test_other_work_goes_past_what_waits(self, bench: StoreBench) -> None:
        await bench.start(work_key=KEY)
        for _ in range(5):
            await bench.admit(work_key=KEY, priority=9)
        other, alone = await bench.admit(work_key=OTHER_KEY), await bench.admit()

        assert ids(await bench.claim(2)) == [other.id, alone.id]

    async def test_one_claim_takes_the_first_of_equal_jobs(self, bench: StoreBench) -> None:
        low = await bench.admit(work_key=KEY, priority=1)
        bench.clock.advance(1.0)
        other = await bench.admit(work_key=OTHER_KEY)
        first = await bench.admit(work_key=KEY, priority=9)
        last = await bench.admit(work_key=KEY, priority=9)

        assert ids(await bench.claim(10)) == [first.id, other.id]
        assert await bench.claim(10) == []
        assert {(await bench.reread(job)).status for job in (low, last)} == {Status.QUEUED}

    async def test_one_claim_over_several_lanes_takes_one_of_equal_jobs(self, bench: StoreBench) -> None:
        await bench.admit(work_key=KEY, lane="cpu")
        first = await bench.admit(work_key=KEY, lane="gpu", priority=9)

        assert ids(await bench.claim(10, "cpu", "gpu")) == [first.id]

    async def test_rival_workers_never_run_equal_work_side_by_side(self, bench: StoreBench) -> None:
        for _ in range(10):
            await bench.admit(work_key=KEY)

        takes = await asyncio.gather(*(bench.claim(5, worker=f"w{number}") for number in range(8)))

        assert len([one for take in takes for one in take]) == 1

    async def test_jobs_without_a_work_key_are_like_no_other(self, bench: StoreBench) -> None:
        first = await bench.start()
        jobs = [await bench.admit() for _ in range(3)]

        assert first.job.work_key is None
        assert ids(await bench.claim(10)) == [job.id for job in jobs]

    async def test_accounts_do_not_wait_for_one_another(self, bench: StoreBench) -> None:
        await bench.start(work_key=KEY)
        theirs = await bench.admit(work_key=KEY, account=OTHER_ACCOUNT)
        both = [
            (await bench.admit(work_key=OTHER_KEY)).id,
            (await bench.admit(work_key=OTHER_KEY, account=OTHER_ACCOUNT)).id,
        ]

        assert set(ids(await bench.claim(10))) == {theirs.id, *both}

    @pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: type(ending).__name__)
    async def test_any_ending_lets_the_next_one_go_and_rings_its_lane(
        self, bench: StoreBench, ending: Ending
    ) -> None:
        first = await bench.start(work_key=KEY)
        waiting = await bench.admit(work_key=KEY, priority=9)

        async with bench.expect_ring(lane_topic(LANE)):
            assert await bench.store.settle(first.lease, ending)

        assert ids(await bench.claim(10)) == [waiting.id]

    async def test_a_takeover_lets_the_next_one_go_and_rings_its_lane(self, bench: StoreBench) -> None:
        first = await bench.start(work_key=KEY)
        waiting = await bench.admit(work_key=KEY, priority=9)
        bench.let_lapse()

        async with bench.expect_ring(lane_topic(LANE)):
            assert await bench.store.take_over(first.lease, Canceled())

        assert ids(await bench.claim(10)) == [waiting.id]

    async def test_what_is_requeued_waits_for_the_equal_job_that_went_first(self, bench: StoreBench) -> None:
        first = await bench.start(work_key=KEY)
        second = await bench.admit(work_key=KEY)
        assert await bench.store.settle(first.lease, retried(delay_seconds=5.0))
        assert ids(await bench.claim(10)) == [second.id]
        bench.clock.advance(5.0)

        assert await bench.claim(10) == []

    async def test_what_is_canceled_in_the_queue_holds_nobody_up(self, bench: StoreBench) -> None:
        first, second = await bench.admit(work_key=KEY), await bench.admit(work_key=KEY)
        assert await bench.store.cancel(first.account, first.id)

        assert ids(await bench.claim(10)) == [second.id]

    async def test_what_is_past_its_deadline_holds_nobody_up(self, bench: StoreBench) -> None:
        await bench.admit(work_key=KEY, priority=9, deadline_seconds=1.0)
        second = await bench.admit(work_key=KEY)
        bench.clock.advance(1.0)

        assert ids(await bench.claim(10)) == [second.id]


class FinishedTwinContract:
    """`finished_twin`, and a result that says where it came from."""

    async def test_a_result_of_equal_work_says_so(self, bench: StoreBench) -> None:
        claimed = await bench.start(work_key=KEY)
        assert await bench.store.settle(claimed.lease, replace(COMPLETED, usage=Usage(), cached=True))

        job = await bench.reread(claimed.job)
        assert (job.status, job.cached, job.result, job.usage) == (Status.COMPLETED, True, RESULT, Usage())

    async def test_a_result_of_the_kernel_does_not(self, bench: StoreBench) -> None:
        claimed = await bench.start(work_key=KEY)
        assert await bench.store.settle(claimed.lease, COMPLETED)

        assert not (await bench.reread(claimed.job)).cached

    async def test_it_is_the_newest_completed_job_of_the_key(self, bench: StoreBench) -> None:
        await self._done(bench)
        newest = await self._done(bench)
        await self._done(bench, work_key=OTHER_KEY)
        asking = await bench.start(work_key=KEY)

        twin = await bench.store.finished_twin(asking.job)

        assert twin == newest

    async def test_there_is_none_at_first(self, bench: StoreBench) -> None:
        asking = await bench.start(work_key=KEY)

        assert await bench.store.finished_twin(asking.job) is None

    async def test_a_job_without_a_work_key_has_none(self, bench: StoreBench) -> None:
        await self._done(bench, work_key=None)
        asking = await bench.start()

        assert await bench.store.finished_twin(asking.job) is None

    @pytest.mark.parametrize("ending", ENDINGS[1:], ids=lambda ending: type(ending).__name__)
    async def test_what_ended_without_a_result_is_none(self, bench: StoreBench, ending: Ending) -> None:
        first = await bench.start(work_key=KEY)
        asking = await bench.admit(work_key=KEY)
        assert await bench.store.settle(first.lease, ending)

        assert await bench.store.finished_twin(asking) is None

    async def test_accounts_do_not_share_results(self, bench: StoreBench) -> None:
        await self._done(bench)
        asking = await bench.start(work_key=KEY, account=OTHER_ACCOUNT)

        assert await bench.store.finished_twin(asking.job) is None

    async def test_a_removed_job_is_none_and_the_one_before_it_is(self, bench: StoreBench) -> None:
        older, newer = await self._done(bench), await self._done(bench)
        assert await bench.store.mark_removed(newer.account, newer.id)
        asking = await bench.start(work_key=KEY)
        then = await bench.store.finished_twin(asking.job)
        assert await bench.store.mark_removed(older.account, older.id)

        assert then == older
        assert await bench.store.finished_twin(asking.job) is None

    async def test_a_job_past_its_retention_is_none_even_before_it_is_removed(
        self, bench: StoreBench
    ) -> None:
        await self._done(bench, retention_days=1.0)
        asking = await bench.admit(work_key=KEY)
        bench.clock.advance(24 * 3600.0 - 0.001)
        within = await bench.store.finished_twin(asking)
        bench.clock.advance(0.001)

        assert within is not None
        assert await bench.store.finished_twin(asking) is None

    async def _done(self, bench: StoreBench, work_key: str | None = KEY, retention_days: float = 30.0) -> Job:
        """A completed job."""
        claimed = await bench.start(work_key=work_key, retention_days=retention_days)
        assert await bench.store.settle(claimed.lease, COMPLETED)
        return await bench.reread(claimed.job)
