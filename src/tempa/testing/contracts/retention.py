"""Contract of `JobStore` for rows past their time: what is pruned, what is not, and what is left."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.jobs.model import JobFilter, Status, Verdict
from tempa.testing.contracts.bench import planned, types
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DAY_SECONDS,
    DELIVERED,
    EXHAUSTED,
    OTHER_ACCOUNT,
    a_key,
    a_new_job,
    an_outcome,
    pending,
)
from tempa.webhooks.model import DeadFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.jobs.model import Job
    from tempa.jobs.ports import Pruned
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Next

KEPT_SECONDS = 30 * DAY_SECONDS
URL = "https://hooks.example/pruned"


class PruneJobsContract:
    """Rows of jobs go when their time has come, with all that is theirs; nothing else does."""

    async def test_a_removed_job_goes_so_long_after_its_retention(self, bench: StoreBench) -> None:
        job = await _removed(bench)
        _pass_to(bench, job, -0.001)
        before = await _prune(bench)
        bench.clock.advance(0.001)

        assert before.jobs == 0
        assert (await _prune(bench)).jobs == 1
        assert await bench.store.job(ACCOUNT, job.id) is None
        assert await bench.store.job_by_id(job.id) is None
        assert await bench.log(job) == []
        assert await bench.store.feed(ACCOUNT, 0, 100) == []
        assert await _listed(bench) == []
        assert (await _prune(bench)).jobs == 0

    async def test_a_job_whose_files_are_still_there_stays(self, bench: StoreBench) -> None:
        job, _ = await bench.in_status(Status.COMPLETED)
        await bench.plan()
        _pass_to(bench, job, DAY_SECONDS)

        assert (await _prune(bench)).jobs == 0
        assert await bench.reread(job) == job

    async def test_what_has_not_ended_is_never_pruned(self, bench: StoreBench) -> None:
        waiting, _ = await bench.in_status(Status.QUEUED)
        running, _ = await bench.in_status(Status.PROCESSING)
        for job in (waiting, running):
            assert not await bench.store.mark_removed(ACCOUNT, job.id)
        await bench.plan()
        _pass_to(bench, running, 365 * DAY_SECONDS)

        assert (await _prune(bench)).jobs == 0
        assert [await bench.reread(job) for job in (waiting, running)] == [waiting, running]

    async def test_the_neighbours_of_a_pruned_job_keep_all_that_is_theirs(self, bench: StoreBench) -> None:
        kept = await _removed(bench, retention_days=31.0)
        log, _ = await bench.log(kept), await bench.plan(URL)
        gone = await _removed(bench)
        _pass_to(bench, gone)

        assert (await _prune(bench)).jobs == 1
        assert await bench.reread(kept) == kept
        assert types(await bench.log(kept)) == types(log)
        assert [job.id for job in await bench.store.jobs(ACCOUNT, JobFilter(), 9, None)] == [kept.id]

    async def test_a_slice_looks_at_so_many_and_the_next_goes_on_behind(self, bench: StoreBench) -> None:
        jobs = [await _started_and_ended(bench) for _ in range(5)]
        await _plan_all_but(bench, jobs[0], jobs[2])
        for job in jobs:
            assert await bench.store.mark_removed(ACCOUNT, job.id)
        _pass_to(bench, jobs[0])

        first = await bench.store.prune(KEPT_SECONDS, None, 2)
        second = await bench.store.prune(KEPT_SECONDS, first.further, 2)
        third = await bench.store.prune(KEPT_SECONDS, second.further, 2)

        assert [first.jobs, second.jobs, third.jobs] == [1, 1, 1]
        assert first.further is not None
        assert second.further is not None
        assert third.further is None
        assert await _listed(bench) == [jobs[2].id, jobs[0].id]

    async def test_the_feed_goes_on_from_where_its_reader_is(self, bench: StoreBench) -> None:
        gone = await _removed(bench)
        (*_, last) = await bench.store.feed(ACCOUNT, 0, 100)
        assert last.position is not None
        _pass_to(bench, gone)
        assert (await _prune(bench)).jobs == 1

        await bench.admit()
        await bench.plan()
        (news,) = await bench.store.feed(ACCOUNT, last.position, 100)
        (as_from_the_start,) = await bench.store.feed(ACCOUNT, 0, 100)

        assert news == as_from_the_start
        assert news.position is not None
        assert news.position > last.position

    async def test_the_keys_of_a_pruned_job_are_free(self, bench: StoreBench) -> None:
        keys = (a_key("mine"), a_key("derived", derived=True))
        jobs = [await _removed(bench, key=key) for key in keys]
        _pass_to(bench, jobs[0])
        assert (await _prune(bench)).jobs == 2

        for key in keys:
            admission = await bench.store.admit(a_new_job(bench.clock, key=key))
            assert admission.verdict is Verdict.ADMITTED

    async def test_a_key_that_passed_to_another_job_stays_that_ones(self, bench: StoreBench) -> None:
        key = a_key("again")
        old = await _removed(bench, key=key)
        bench.clock.advance((old.retained_until - bench.clock.now()).total_seconds())
        new = await bench.admit(key=key)
        await bench.plan()
        _pass_to(bench, old)

        assert (await _prune(bench)).jobs == 1
        replay = await bench.store.admit(a_new_job(bench.clock, key=key))
        assert (replay.verdict, replay.job.id) == (Verdict.REPLAYED, new.id)


class PruneBoundContract:
    """A job does not go before everybody was told of it."""

    async def test_a_job_whose_events_wait_for_fan_out_stays(self, bench: StoreBench) -> None:
        job = await _ended(bench)
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        _pass_to(bench, job)
        before = await _prune(bench)
        await bench.plan()

        assert before.jobs == 0
        assert (await _prune(bench)).jobs == 1

    async def test_a_job_stays_until_its_deliveries_are_over(self, bench: StoreBench) -> None:
        job = await _ended(bench)
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        _pass_to(bench, job)
        deliveries = await bench.plan(URL)

        stayed = [(await _prune(bench)).jobs]
        (taken,) = await bench.take(1)
        stayed.append((await _prune(bench)).jobs)  # on its way
        assert await bench.store.settle_delivery(taken, an_outcome(), pending())
        stayed.append((await _prune(bench)).jobs)  # waits for its retry
        await _deliver(bench, deliveries, DELIVERED)

        assert stayed == [0, 0, 0]
        assert (await _prune(bench)).jobs == 1
        assert await bench.store.deliveries(ACCOUNT, **_ANY, job_id=job.id) == []
        assert await bench.store.delivery_counts() == {}

    async def test_a_job_with_a_dead_letter_stays_until_that_is_let_go(self, bench: StoreBench) -> None:
        job = await _ended(bench)
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        _pass_to(bench, job)
        await _deliver(bench, await bench.plan(URL), EXHAUSTED)
        before = await _prune(bench)
        letters = await bench.store.deliveries(ACCOUNT, **_ANY, job_id=job.id)
        which = DeadFilter(delivery_ids=tuple(letter.id for letter in letters))
        assert await bench.store.discard(ACCOUNT, which, "receiver is gone") == len(letters)

        assert (before.jobs, len(letters)) == (0, 3)
        assert (await _prune(bench)).jobs == 1

    async def test_an_endpoint_serves_on_after_its_last_job_was_pruned(self, bench: StoreBench) -> None:
        job = await _ended(bench)
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        await _deliver(bench, await bench.plan(URL), DELIVERED)
        _pass_to(bench, job)
        assert (await _prune(bench)).jobs == 1

        (made,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()

        assert (claimed.id, claimed.url) == (made, URL)


class TombstoneContract:
    """That there was such a job is remembered for a while."""

    async def test_when_a_job_went_is_told_to_its_account(self, bench: StoreBench) -> None:
        job = await _removed(bench)
        before = await bench.store.gone_at(ACCOUNT, job.id)
        _pass_to(bench, job)
        assert (await _prune(bench)).jobs == 1

        assert before is None
        assert await bench.store.gone_at(ACCOUNT, job.id) == bench.clock.now()
        assert await bench.store.gone_at(OTHER_ACCOUNT, job.id) is None

    async def test_tombstones_go_the_oldest_first(self, bench: StoreBench) -> None:
        jobs = [await _removed(bench, retention_days=days) for days in (30.0, 31.0, 32.0)]
        for job in jobs:
            _pass_to(bench, job)
            assert (await _prune(bench)).jobs == 1

        too_young = await bench.store.forget_gone(2 * DAY_SECONDS + 0.001, 10)
        first = await bench.store.forget_gone(2 * DAY_SECONDS, 10)
        bench.clock.advance(2 * DAY_SECONDS)
        second = await bench.store.forget_gone(2 * DAY_SECONDS, 1)

        assert (too_young, first, second) == (0, 1, 1)
        assert [await bench.store.gone_at(ACCOUNT, job.id) is None for job in jobs] == [True, True, False]

    async def test_late_bytes_of_a_pruned_job_are_nobodys(self, bench: StoreBench) -> None:
        job = await _removed(bench)
        _pass_to(bench, job)
        assert (await _prune(bench)).jobs == 1

        assert await bench.store.orphans([job.id]) == [job.id]

    async def test_a_page_goes_on_behind_a_job_that_was_pruned_meanwhile(self, bench: StoreBench) -> None:
        oldest, older = await _removed(bench, retention_days=90.0), await _removed(bench, retention_days=90.0)
        gone = await _removed(bench)
        _pass_to(bench, gone)
        assert (await _prune(bench)).jobs == 1
        await bench.admit()

        assert await _listed(bench, before=gone.id) == [older.id, oldest.id]
        assert await bench.store.jobs(OTHER_ACCOUNT, JobFilter(), 10, gone.id) == []


_ANY: dict[str, Any] = {"status": None, "endpoint_id": None, "limit": 10, "before": None}


async def _started_and_ended(bench: StoreBench, **new: Any) -> Job:
    claimed = await bench.start(**new)
    assert await bench.store.settle(claimed.lease, COMPLETED)
    return await bench.reread(claimed.job)


async def _ended(bench: StoreBench, **new: Any) -> Job:
    """A completed job; of all events only its own are not fanned out yet."""
    await bench.plan()
    return await _started_and_ended(bench, **new)


async def _removed(bench: StoreBench, **new: Any) -> Job:
    """A completed job whose files were removed, and of which nobody is told any more."""
    job = await _ended(bench, **new)
    await bench.plan()
    assert await bench.store.mark_removed(ACCOUNT, job.id)
    return await bench.reread(job)


async def _plan_all_but(bench: StoreBench, *jobs: Job) -> None:
    left = {job.id for job in jobs}
    events = await bench.store.unplanned(1000)
    await bench.store.fan_out([planned(event) for event in events if event.job_id not in left])


def _pass_to(bench: StoreBench, job: Job, seconds: float = 0.0) -> None:
    """The moment at which the job's row may go, or so long after it."""
    due = job.retained_until + timedelta(seconds=KEPT_SECONDS + seconds)
    bench.clock.advance((due - bench.clock.now()).total_seconds())


async def _prune(bench: StoreBench) -> Pruned:
    pruned = await bench.store.prune(KEPT_SECONDS, None, 10)
    assert pruned.further is None
    return pruned


async def _deliver(bench: StoreBench, count: int, then: Next) -> None:
    """Claim `count` deliveries, one after the other as the order of their job demands, and end them so."""
    for _ in range(count):
        (taken,) = await bench.take(1)
        assert await bench.store.settle_delivery(taken, an_outcome("x", 200), then)


async def _listed(bench: StoreBench, before: str | None = None) -> Sequence[str]:
    return [job.id for job in await bench.store.jobs(ACCOUNT, JobFilter(), 10, before)]
