"""Contract of what a waiting client is told: its place, and what past jobs took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.jobs.model import Completed, Failed, PastJob
from tempa.testing.contracts.samples import BAD_FILLET, COMPLETED, OTHER_ACCOUNT, RESULT, USAGE

if TYPE_CHECKING:
    from tempa.jobs.model import Ending
    from tempa.testing.contracts.bench import StoreBench

WEEK_SECONDS = 7 * 86_400.0


class EstimateContract:
    """`queue_position`, `past_jobs`."""

    async def test_a_place_is_among_the_accounts_own_jobs(self, bench: StoreBench) -> None:
        for _ in range(5):
            await bench.admit(account=OTHER_ACCOUNT, priority=9)
        first, second = await bench.admit(), await bench.admit()

        assert await bench.store.queue_position(first) == 0
        assert await bench.store.queue_position(second) == 1

    async def test_a_place_is_the_order_in_which_the_accounts_jobs_are_claimed(
        self, bench: StoreBench
    ) -> None:
        """With another account's in between: turns come and go, the order of its own stays."""
        jobs = []
        for priority in (5, 9, 0, 5, 7, 9):
            jobs.append(await bench.admit(priority=priority))
            await bench.admit(account=OTHER_ACCOUNT, priority=9)
            bench.clock.advance(0.001)
        places = {job.id: await bench.store.queue_position(job) for job in jobs}

        claimed = [one.job.id for one in await bench.claim(12)]

        own = [job_id for job_id in claimed if job_id in places]
        assert [places[job_id] for job_id in own] == list(range(6))

    async def test_past_jobs_are_the_latest_of_the_engine_that_ran_and_were_completed(
        self, bench: StoreBench
    ) -> None:
        await _past(bench, 1.0, 2.0)
        await _past(bench, 3.0, 4.0)
        await _past(bench, 5.0, 6.0)
        await _past(bench, 0.0, 0.0, Completed(result=RESULT, usage=USAGE, cached=True))
        await _past(bench, 0.0, 0.0, Failed(error=BAD_FILLET))
        await _past(bench, 9.0, 9.0, engine="another")
        await bench.start()

        assert await bench.store.past_jobs("opencascade-brep", WEEK_SECONDS, 2) == [
            PastJob(total_seconds=11.0, run_seconds=6.0),
            PastJob(total_seconds=7.0, run_seconds=4.0),
        ]
        assert await bench.store.past_jobs("unknown", WEEK_SECONDS, 2) == []

    async def test_what_is_older_than_asked_for_is_left_out(self, bench: StoreBench) -> None:
        await _past(bench, 1.0, 1.0)
        bench.clock.advance(WEEK_SECONDS - 1.0)
        await _past(bench, 2.0, 3.0)
        bench.clock.advance(1.0)

        assert await bench.store.past_jobs("opencascade-brep", WEEK_SECONDS, 50) == [PastJob(5.0, 3.0)]


async def _past(
    bench: StoreBench,
    waited_seconds: float,
    ran_seconds: float,
    ending: Ending = COMPLETED,
    engine: str = "opencascade-brep",
) -> None:
    job = await bench.admit(engine=engine, lane="past")
    bench.clock.advance(waited_seconds)
    (claimed,) = await bench.claim(1, "past")
    assert claimed.job.id == job.id
    bench.clock.advance(ran_seconds)
    assert await bench.store.settle(claimed.lease, ending)
