"""Contract of `JobStore.admit`: one transaction, and what a key binds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.core.work import EVENTS, job_topic, lane_topic
from tempa.jobs.model import Failed, Status, Usage, Verdict
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import (
    ACCOUNT,
    BAD_FILLET,
    COMPLETED,
    DAY_SECONDS,
    LANE,
    OTHER_ACCOUNT,
    a_key,
    a_new_job,
    a_request,
)

if TYPE_CHECKING:
    from tempa.jobs.model import Admission, Reservation
    from tempa.testing.contracts.bench import StoreBench


class AdmissionContract:
    """202 means on disk; a key names one job."""

    async def test_an_admitted_job_is_queued_as_it_was_asked_for(self, bench: StoreBench) -> None:
        new = a_new_job(bench.clock, key=a_key(), deadline_seconds=60.0, priority=7)

        admission = await bench.store.admit(new)

        job = await bench.store.job(ACCOUNT, new.id)
        assert admission.verdict is Verdict.ADMITTED
        assert job == admission.job
        assert job is not None
        assert job.request == new.request == a_request(deadline_seconds=60.0, priority=7)
        assert (job.id, job.account, job.status) == (new.id, ACCOUNT, Status.QUEUED)
        assert (job.created_at, job.run_at) == (new.created_at, new.created_at)
        assert (job.deadline_at, job.retained_until) == (new.deadline_at, new.retained_until)
        assert (job.epoch, job.crash_count, job.retry_count, job.sequence) == (0, 0, 0, 1)
        assert (job.started_at, job.completed_at, job.result, job.error) == (None, None, None, None)
        assert (job.stage, job.fraction, job.usage) == (None, None, Usage())
        assert (job.cancel_requested, job.cached, job.removed) == (False, False, False)

    async def test_the_first_event_is_written_with_the_job(self, bench: StoreBench) -> None:
        new = a_new_job(bench.clock)

        await bench.store.admit(new)

        (event,) = await bench.store.job_events(new.id, 0, 10)
        assert (event.id, event.account, event.job_id) == (new.event_id, ACCOUNT, new.id)
        assert (event.sequence, event.type, event.at) == (1, "job.queued", new.created_at)
        assert event.body == {"engine": "opencascade-brep", "priority": 5}
        assert (event.announce, event.position) == (None, None)

    async def test_an_admission_rings_its_lane_its_job_and_fan_out(self, bench: StoreBench) -> None:
        new = a_new_job(bench.clock)

        async with bench.expect_ring(lane_topic(LANE), job_topic(new.id), EVENTS):
            await bench.store.admit(new)

    async def test_a_replay_writes_nothing_and_rings_nobody(self, bench: StoreBench) -> None:
        job = await bench.admit(key=a_key())
        again = a_new_job(bench.clock, key=a_key())

        async with bench.expect_silence(lane_topic(LANE), job_topic(job.id), EVENTS):
            admission = await bench.store.admit(again)

        assert (admission.verdict, admission.job) == (Verdict.REPLAYED, job)
        assert await bench.store.job(ACCOUNT, again.id) is None
        assert await bench.store.job_events(again.id, 0, 10) == []
        assert types(await bench.log(job)) == ["job.queued"]

    async def test_the_same_key_for_another_request_is_refused(self, bench: StoreBench) -> None:
        job = await bench.admit(key=a_key(fingerprint="f1"))
        other = a_new_job(bench.clock, key=a_key(fingerprint="f2"))

        admission = await bench.store.admit(other)

        assert (admission.verdict, admission.job.id) == (Verdict.REUSED, job.id)
        assert await bench.store.job(ACCOUNT, other.id) is None

    async def test_first_requests_at_once_make_one_job(self, bench: StoreBench) -> None:
        rivals = [a_new_job(bench.clock, key=a_key()) for _ in range(50)]

        admissions = await asyncio.gather(*(bench.store.admit(new) for new in rivals))

        verdicts = [admission.verdict for admission in admissions]
        assert verdicts.count(Verdict.ADMITTED) == 1
        assert verdicts.count(Verdict.REPLAYED) == len(rivals) - 1
        assert len({admission.job.id for admission in admissions}) == 1
        assert await bench.store.counts() == {("queued", LANE): 1}

    async def test_keys_of_two_accounts_never_meet(self, bench: StoreBench) -> None:
        mine = await bench.admit(key=a_key())
        theirs = await bench.admit(key=a_key(), account=OTHER_ACCOUNT)

        assert mine.id != theirs.id

    async def test_keys_of_two_routes_never_meet(self, bench: StoreBench) -> None:
        first = await bench.admit(key=a_key(route="/v1/convert"))
        second = await bench.admit(key=a_key(route="/v1/inspect"))

        assert first.id != second.id

    async def test_a_clients_key_never_meets_a_derived_one(self, bench: StoreBench) -> None:
        first = await bench.admit(key=a_key("same", derived=True, fingerprint="f1"))
        second = await bench.admit(key=a_key("same", derived=False, fingerprint="f2"))

        assert first.id != second.id

    async def test_without_a_key_every_request_is_a_new_job(self, bench: StoreBench) -> None:
        first, second = await bench.admit(), await bench.admit()

        assert first.id != second.id

    async def test_a_key_that_breaks_leaves_no_job_behind(self, bench: StoreBench) -> None:
        """The event's id is taken: the last statement of the transaction fails, and takes all with it."""
        taken = a_new_job(bench.clock)
        await bench.store.admit(taken)
        broken = replace(a_new_job(bench.clock, key=a_key()), event_id=taken.event_id)

        try:
            await bench.store.admit(broken)
        except Exception:  # noqa: BLE001 - which error it is, is the database's affair
            failed = True
        else:
            failed = False

        assert failed
        assert await bench.store.job(ACCOUNT, broken.id) is None
        assert (await bench.admit(key=a_key())).sequence == 1


class ClientKeyContract:
    """A client's key binds while its job is not terminal and 24 h beyond."""

    async def test_it_binds_while_the_job_waits_or_runs(self, bench: StoreBench) -> None:
        job = await bench.admit(key=a_key(), retention_days=1000.0)
        bench.clock.advance(100 * DAY_SECONDS)
        waiting = await _ask_again(bench, a_key())
        await bench.claim()
        bench.clock.advance(100 * DAY_SECONDS)
        running = await _ask_again(bench, a_key())

        assert [waiting.verdict, running.verdict] == [Verdict.REPLAYED, Verdict.REPLAYED]
        assert (waiting.job.id, running.job.id) == (job.id, job.id)
        assert running.job.status is Status.PROCESSING

    async def test_it_binds_24_hours_after_the_end_and_is_free_then(self, bench: StoreBench) -> None:
        for status in (Status.COMPLETED, Status.FAILED, Status.CANCELED):
            key = a_key(f"key-{status}")
            job = await _ended(bench, status, key)

            bench.clock.advance(DAY_SECONDS - 0.001)
            within = await _ask_again(bench, key)
            bench.clock.advance(0.001)
            beyond = await _ask_again(bench, key)

            assert (within.verdict, within.job.id, within.job.status) == (Verdict.REPLAYED, job, status)
            assert beyond.verdict is Verdict.ADMITTED
            assert beyond.job.id != job

    async def test_it_never_binds_to_what_is_past_its_retention(self, bench: StoreBench) -> None:
        """A job that answers 410 is no answer to a new request."""
        key = a_key()
        claimed = await bench.start(key=key, retention_days=0.5)
        assert await bench.store.settle(claimed.lease, COMPLETED)
        bench.clock.advance(DAY_SECONDS / 2 - 0.001)
        within = await _ask_again(bench, key)
        bench.clock.advance(0.001)
        beyond = await _ask_again(bench, key)

        assert (within.verdict, within.job.id) == (Verdict.REPLAYED, claimed.job.id)
        assert beyond.verdict is Verdict.ADMITTED

    async def test_a_free_key_binds_to_its_new_job_with_the_new_request(self, bench: StoreBench) -> None:
        await _ended(bench, Status.COMPLETED, a_key(fingerprint="f1"))
        bench.clock.advance(DAY_SECONDS)

        renewed = await _ask_again(bench, a_key(fingerprint="f2"))
        again = await _ask_again(bench, a_key(fingerprint="f2"))
        other = await _ask_again(bench, a_key(fingerprint="f1"))

        assert renewed.verdict is Verdict.ADMITTED
        assert (again.verdict, again.job.id) == (Verdict.REPLAYED, renewed.job.id)
        assert (other.verdict, other.job.id) == (Verdict.REUSED, renewed.job.id)


class DerivedKeyContract:
    """A derived key binds while its job waits, runs, or has a result that is kept."""

    async def test_it_binds_while_there_is_or_will_be_a_result(self, bench: StoreBench) -> None:
        key = a_key(derived=True)
        job = await bench.admit(key=key)
        waiting = await _ask_again(bench, key)
        (claimed,) = await bench.claim()
        running = await _ask_again(bench, key)
        assert await bench.store.settle(claimed.lease, COMPLETED)
        bench.clock.advance(29 * DAY_SECONDS)
        kept = await _ask_again(bench, key)

        for admission in (waiting, running, kept):
            assert (admission.verdict, admission.job.id) == (Verdict.REPLAYED, job.id)

    async def test_it_binds_past_the_retention_while_there_will_be_a_result(self, bench: StoreBench) -> None:
        key = a_key(derived=True)
        job = await bench.admit(key=key, retention_days=1.0)
        bench.clock.advance(2 * DAY_SECONDS)
        waiting = await _ask_again(bench, key)
        await bench.claim()
        running = await _ask_again(bench, key)

        assert [waiting.job.id, running.job.id] == [job.id, job.id]

    async def test_a_result_without_its_files_does_not_stand_in_the_way(self, bench: StoreBench) -> None:
        key = a_key(derived=True)
        job = await _ended(bench, Status.COMPLETED, key)
        anew = await _ask_again(bench, replace(key, not_for=job))
        again = await _ask_again(bench, key)

        assert (anew.verdict, again.verdict) == (Verdict.ADMITTED, Verdict.REPLAYED)
        assert again.job.id == anew.job.id

    async def test_a_failed_or_canceled_job_can_be_asked_for_again(self, bench: StoreBench) -> None:
        for status in (Status.FAILED, Status.CANCELED):
            key = a_key(f"key-{status}", derived=True)
            job = await _ended(bench, status, key)

            again = await _ask_again(bench, key)
            bound = await _ask_again(bench, key)

            assert again.verdict is Verdict.ADMITTED
            assert again.job.id != job
            assert (bound.verdict, bound.job.id) == (Verdict.REPLAYED, again.job.id)
            (claimed,) = await bench.claim()
            assert await bench.store.settle(claimed.lease, COMPLETED)

    async def test_a_removed_result_can_be_asked_for_again(self, bench: StoreBench) -> None:
        key = a_key(derived=True)
        job = await _ended(bench, Status.COMPLETED, key)
        assert await bench.store.mark_removed(ACCOUNT, job)

        assert (await _ask_again(bench, key)).verdict is Verdict.ADMITTED

    async def test_a_result_past_its_retention_can_be_asked_for_again(self, bench: StoreBench) -> None:
        key = a_key(derived=True)
        await _ended(bench, Status.COMPLETED, key)
        bench.clock.advance(30 * DAY_SECONDS)

        assert (await _ask_again(bench, key)).verdict is Verdict.ADMITTED


async def _ask_again(bench: StoreBench, key: Reservation) -> Admission:
    return await bench.store.admit(a_new_job(bench.clock, key=key))


async def _ended(bench: StoreBench, status: Status, key: Reservation) -> str:
    """The id of a job that was admitted under `key` and ended in `status`."""
    lane = new_id("lane")
    job = await bench.admit(key=key, lane=lane)
    if status is Status.CANCELED:
        assert await bench.store.cancel(ACCOUNT, job.id)
    else:
        (claimed,) = await bench.claim(1, lane)
        assert claimed.job.id == job.id
        ending = COMPLETED if status is Status.COMPLETED else Failed(error=BAD_FILLET)
        assert await bench.store.settle(claimed.lease, ending)
    return job.id
