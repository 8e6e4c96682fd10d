"""Contract of `JobStore` from the client's side and the janitor's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.core.work import EVENTS, cancel_topic, job_topic
from tempa.jobs.model import CancelOutcome, Failed, JobFilter, Status, StoredFile
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import (
    ACCOUNT,
    BAD_FILLET,
    COMPLETED,
    DAY_SECONDS,
    LANE,
    OTHER_ACCOUNT,
    TOO_LATE,
    retried,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.jobs.model import Job
    from tempa.testing.contracts.bench import StoreBench

_NOWHERE = "cad_00000000000000000000000000"


class CancelContract:
    """Canceled at once, asked for, or too late."""

    async def test_a_queued_job_is_canceled_at_once(self, bench: StoreBench) -> None:
        job = await bench.admit()
        bench.clock.advance(1.0)

        async with bench.expect_ring(job_topic(job.id), EVENTS):
            answer = await bench.store.cancel(ACCOUNT, job.id)

        canceled = await bench.reread(job)
        assert answer == (CancelOutcome.CANCELED, canceled)
        assert (canceled.status, canceled.completed_at) == (Status.CANCELED, bench.clock.now())
        assert types(await bench.log(job)) == ["job.queued", "job.canceled"]
        assert await bench.claim() == []

    async def test_a_running_job_is_asked_to_stop(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        for _ in range(2):  # asking again changes nothing
            async with bench.expect_ring(cancel_topic(claimed.job.id)):
                answer = await bench.store.cancel(ACCOUNT, claimed.job.id)

            asked = await bench.reread(claimed.job)
            assert answer == (CancelOutcome.REQUESTED, asked)
            assert (asked.status, asked.cancel_requested, asked.sequence) == (Status.PROCESSING, True, 2)

    async def test_a_finished_job_stays_as_it_is(self, bench: StoreBench) -> None:
        for status in (Status.COMPLETED, Status.FAILED, Status.CANCELED):
            job, _ = await bench.in_status(status)
            log = await bench.log(job)

            assert await bench.store.cancel(ACCOUNT, job.id) == (CancelOutcome.FINISHED, job)
            assert (await bench.reread(job), await bench.log(job)) == (job, log)

    async def test_nobody_cancels_what_is_not_his(self, bench: StoreBench) -> None:
        job = await bench.admit()

        assert await bench.store.cancel(OTHER_ACCOUNT, job.id) is None
        assert await bench.store.cancel(ACCOUNT, _NOWHERE) is None
        assert await bench.reread(job) == job


class LookingContract:
    """One job, lists of jobs, places in the queue."""

    async def test_a_job_is_seen_by_its_account_only(self, bench: StoreBench) -> None:
        job = await bench.admit()

        assert await bench.store.job(ACCOUNT, job.id) == job
        assert await bench.store.job(OTHER_ACCOUNT, job.id) is None
        assert await bench.store.job_by_id(job.id) == job
        assert await bench.store.job_by_id(_NOWHERE) is None

    async def test_a_list_pages_through_all_newest_first(self, bench: StoreBench) -> None:
        kinds = ("splat", "cad", "conv", "insp", "cad")  # the order is not that of the ids' prefixes
        admitted = [(await bench.admit(kind=kind)).id for kind in kinds]
        await bench.admit(account=OTHER_ACCOUNT)

        pages: list[str] = []
        while page := await _list(bench, limit=2, before=pages[-1] if pages else None):
            assert len(page) <= 2
            pages += page

        assert pages == admitted[::-1]

    async def test_a_list_goes_on_only_from_an_own_job(self, bench: StoreBench) -> None:
        await bench.admit()
        theirs = await bench.admit(account=OTHER_ACCOUNT)

        assert await _list(bench, before=theirs.id) == []
        assert await _list(bench, before=_NOWHERE) == []

    async def test_a_list_narrows_by_every_condition(self, bench: StoreBench) -> None:
        old = await bench.admit(engine="manifold", tags={"a.b": 'x"y', "c": "1"})
        claimed = await bench.claim()
        assert await bench.store.settle(claimed[0].lease, Failed(error=BAD_FILLET))
        bench.clock.advance(60.0)
        since = bench.clock.now()
        new = await bench.admit(engine="opencascade-brep", tags={"c": "2", "%": "_"})

        assert await _list(bench, JobFilter(status=Status.QUEUED)) == [new.id]
        assert await _list(bench, JobFilter(status=Status.FAILED)) == [old.id]
        assert await _list(bench, JobFilter(engine="manifold")) == [old.id]
        assert await _list(bench, JobFilter(code="FILLET_FAILED")) == [old.id]
        assert await _list(bench, JobFilter(code="WORKER_LOST")) == []
        assert await _list(bench, JobFilter(since=since)) == [new.id]
        assert await _list(bench, JobFilter(since=since - timedelta(days=1))) == [new.id, old.id]
        assert await _list(bench, JobFilter(since=since + timedelta(milliseconds=1))) == []
        assert await _list(bench, JobFilter(tag='a.b:x"y')) == [old.id]
        assert await _list(bench, JobFilter(tag="%:_")) == [new.id]
        assert await _list(bench, JobFilter(tag="c:2")) == [new.id]
        assert await _list(bench, JobFilter(tag="a:x")) == []
        assert await _list(bench, JobFilter(status=Status.QUEUED, engine="manifold")) == []

    async def test_a_tag_with_colons_is_found_wherever_its_name_ends(self, bench: StoreBench) -> None:
        early = await bench.admit(tags={"a": "b:c"})
        late = await bench.admit(tags={"a:b": "c", "other": ""})
        edge = await bench.admit(tags={":": ":"})
        await bench.admit(tags={"a": "b", "b": "c", "a:b:c": "d", "b:c": "a"})

        assert await _list(bench, JobFilter(tag="a:b:c")) == [late.id, early.id]
        assert await _list(bench, JobFilter(tag=":::")) == [edge.id]
        assert await _list(bench, JobFilter(tag="other:")) == [late.id]
        assert await _list(bench, JobFilter(tag="a:b:")) == []

    async def test_whatever_characters_a_tag_has_the_others_are_found(self, bench: StoreBench) -> None:
        await bench.admit(tags={"a\0": "\0\0", "b": "\\u0000", "c\\": "\\\0"})
        plain = await bench.admit(tags={"d": "1"})

        assert await _list(bench, JobFilter(tag="d:1")) == [plain.id]
        assert len(await _list(bench, JobFilter(tag="b:\\u0000"))) == 1

    async def test_a_place_in_the_queue_counts_who_goes_first(self, bench: StoreBench) -> None:
        first = await bench.admit()
        second = await bench.admit()
        urgent = await bench.admit(priority=9)
        patient = await bench.admit(priority=0)
        await bench.admit(lane="gpu", priority=9)

        places = [await bench.store.queue_position(job) for job in (urgent, first, second, patient)]
        (taken,) = await bench.claim()

        assert places == [0, 1, 2, 3]
        assert taken.job.id == urgent.id
        assert await bench.store.queue_position(taken.job) == 0
        assert await bench.store.queue_position(first) == 0
        assert await bench.store.queue_position(patient) == 2

    async def test_counts_tell_status_and_lane(self, bench: StoreBench) -> None:
        for lane in ("cpu", "cpu", "gpu"):
            await bench.admit(lane=lane)
        await bench.claim(1, "cpu")

        assert await bench.store.counts() == {
            ("queued", "cpu"): 1,
            ("processing", "cpu"): 1,
            ("queued", "gpu"): 1,
        }

    async def test_the_oldest_queued_is_the_longest_waiting_of_its_lane(self, bench: StoreBench) -> None:
        first = await bench.admit()
        bench.clock.advance(1.0)
        second = await bench.admit(priority=0)

        assert await bench.store.oldest_queued(LANE) == first.created_at
        await bench.claim()
        assert await bench.store.oldest_queued(LANE) == second.created_at
        assert await bench.store.oldest_queued("gpu") is None


class DeadlineContract:
    """Jobs that nobody took in time."""

    async def test_overdue_are_those_whose_deadline_passed_in_the_queue(self, bench: StoreBench) -> None:
        later = await bench.admit(deadline_seconds=20.0)
        sooner = await bench.admit(deadline_seconds=10.0)
        await bench.admit()
        running = await bench.admit(deadline_seconds=5.0, priority=9)
        await bench.claim()
        bench.clock.advance(9.999)
        before = await bench.store.overdue(10)
        bench.clock.advance(0.001)
        at_ten = await bench.store.overdue(10)
        bench.clock.advance(10.0)

        assert before == []
        assert at_ten == [sooner]
        assert await bench.store.overdue(10) == [sooner, later]
        assert await bench.store.overdue(1) == [sooner]
        assert (await bench.reread(running)).status is Status.PROCESSING

    async def test_failing_in_the_queue_ends_the_job(self, bench: StoreBench) -> None:
        job = await bench.admit(deadline_seconds=10.0)
        bench.clock.advance(11.0)

        async with bench.expect_ring(job_topic(job.id), EVENTS):
            assert await bench.store.fail_queued(job.id, TOO_LATE)

        failed = await bench.reread(job)
        assert (failed.status, failed.error) == (Status.FAILED, TOO_LATE)
        assert (failed.completed_at, failed.started_at) == (bench.clock.now(), None)
        assert types(await bench.log(job)) == ["job.queued", "job.failed"]
        assert await bench.store.overdue(10) == []


class RetentionContract:
    """What is kept, and until when."""

    async def test_only_a_terminal_job_can_be_removed(self, bench: StoreBench) -> None:
        for status in Status:
            job, _ = await bench.in_status(status)

            removed = await bench.store.mark_removed(ACCOUNT, job.id)

            assert removed is status.terminal
            assert (await bench.reread(job)).removed is status.terminal

    async def test_removing_is_idempotent_and_for_the_owner_only(self, bench: StoreBench) -> None:
        job, _ = await bench.in_status(Status.COMPLETED)

        assert not await bench.store.mark_removed(OTHER_ACCOUNT, job.id)
        assert not (await bench.reread(job)).removed
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        assert await bench.store.mark_removed(ACCOUNT, job.id)
        assert not await bench.store.mark_removed(ACCOUNT, _NOWHERE)

    async def test_lapsed_are_terminal_jobs_past_retention_not_removed_yet(self, bench: StoreBench) -> None:
        completed, _ = await bench.in_status(Status.COMPLETED)
        failed, _ = await bench.in_status(Status.FAILED)
        await bench.in_status(Status.QUEUED)
        await bench.in_status(Status.PROCESSING)
        bench.clock.advance((completed.retained_until - bench.clock.now()).total_seconds() - 0.001)
        before = await bench.store.lapsed(10)
        bench.clock.advance(DAY_SECONDS)
        after = await bench.store.lapsed(10)
        assert await bench.store.mark_removed(ACCOUNT, completed.id)

        assert before == []
        assert {job.id for job in after} == {completed.id, failed.id}
        assert len(await bench.store.lapsed(1)) == 1
        assert [job.id for job in await bench.store.lapsed(10)] == [failed.id]

    async def test_a_file_is_kept_for_its_account_until_it_is_forgotten(self, bench: StoreBench) -> None:
        stored = _a_file(bench)
        await bench.store.add_file(stored)

        assert await bench.store.file(ACCOUNT, stored.id) == stored
        assert await bench.store.file(OTHER_ACCOUNT, stored.id) is None
        await bench.store.forget_file(stored.id)
        await bench.store.forget_file(stored.id)
        assert await bench.store.file(ACCOUNT, stored.id) is None

    async def test_lapsed_files_are_those_that_have_expired(self, bench: StoreBench) -> None:
        first, second = _a_file(bench, days=1), _a_file(bench, days=2)
        for stored in (second, first):
            await bench.store.add_file(stored)
        bench.clock.advance(DAY_SECONDS - 0.001)
        before = await bench.store.lapsed_files(10)
        bench.clock.advance(2 * DAY_SECONDS)

        assert before == []
        assert await bench.store.lapsed_files(10) == [first, second]
        assert await bench.store.lapsed_files(1) == [first]

    async def test_orphans_are_removed_jobs_and_uploads_without_a_record(self, bench: StoreBench) -> None:
        kept = [(await bench.in_status(status))[0].id for status in Status]
        removed, _ = await bench.in_status(Status.COMPLETED)
        assert await bench.store.mark_removed(ACCOUNT, removed.id)
        recorded, lost = _a_file(bench), new_id("file")
        await bench.store.add_file(recorded)

        orphans = await bench.store.orphans([*kept, removed.id, recorded.id, lost, _NOWHERE])

        assert sorted(orphans) == sorted([removed.id, lost])
        assert await bench.store.orphans([]) == []

    async def test_unknown_jobs_are_those_without_a_row(self, bench: StoreBench) -> None:
        there = await bench.admit()

        assert await bench.store.unknown_jobs([there.id, _NOWHERE]) == [_NOWHERE]
        assert await bench.store.unknown_jobs([]) == []

    async def test_a_job_that_came_back_from_the_queue_keeps_all_it_was_asked(
        self, bench: StoreBench
    ) -> None:
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, retried())
        (again,) = await bench.claim()
        assert await bench.store.settle(again.lease, COMPLETED)

        job = await bench.reread(claimed.job)
        assert job.request == claimed.job.request
        assert (job.created_at, job.retained_until) == (claimed.job.created_at, claimed.job.retained_until)


async def _list(
    bench: StoreBench, narrow: JobFilter | None = None, limit: int = 100, before: str | None = None
) -> Sequence[str]:
    jobs: list[Job] = await bench.store.jobs(ACCOUNT, narrow or JobFilter(), limit, before)
    return [job.id for job in jobs]


def _a_file(bench: StoreBench, days: int = 7) -> StoredFile:
    now = bench.clock.now()
    return StoredFile(
        id=new_id("file"),
        account=ACCOUNT,
        key="files/abc",
        sha256="ef" * 32,
        size_bytes=5_000_000_000,  # more than 32 bits
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
