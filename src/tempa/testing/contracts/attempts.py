"""Contract of `JobStore.claim`, `beat` and `settle`: an attempt from its start to its end."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.work import EVENTS, job_topic, lane_topic
from tempa.jobs.model import (
    Beat,
    BeatAnswer,
    Canceled,
    Failed,
    Lease,
    Released,
    Stage,
    Status,
    Usage,
)
from tempa.testing.contracts.bench import sequences, types
from tempa.testing.contracts.samples import (
    BAD_FILLET,
    COMPLETED,
    LANE,
    LEASE_SECONDS,
    RESULT,
    USAGE,
    retried,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench

_HELD = BeatAnswer(held=True, cancel_requested=False)


class ClaimContract:
    """Who is taken, by whom, in which order."""

    async def test_a_claim_starts_the_attempt(self, bench: StoreBench) -> None:
        job = await bench.admit()
        bench.clock.advance(2.0)

        async with bench.expect_ring(job_topic(job.id), EVENTS):
            (claimed,) = await bench.claim()

        now = bench.clock.now()
        assert claimed.lease == Lease(job.id, 1)
        assert claimed.job == await bench.reread(job)
        assert (claimed.job.status, claimed.job.epoch, claimed.job.sequence) == (Status.PROCESSING, 1, 2)
        assert claimed.job.started_at == now
        started = (await bench.log(job))[-1]
        assert (started.sequence, started.type, started.at) == (2, "job.started", now)
        assert started.body == {"attempt": 1}
        assert started.announce is not None
        assert started.announce["data"]["job_id"] == job.id

    async def test_higher_priorities_go_first_then_who_waited_longest(self, bench: StoreBench) -> None:
        first_low = await bench.admit(priority=1)
        bench.clock.advance(1.0)
        first = await bench.admit()
        same_time = await bench.admit()
        bench.clock.advance(1.0)
        last = await bench.admit()
        high = await bench.admit(priority=9)

        order = [claimed.job.id for claimed in await bench.claim(10)]

        assert order == [high.id, first.id, same_time.id, last.id, first_low.id]

    async def test_a_claim_takes_no_more_than_its_limit(self, bench: StoreBench) -> None:
        jobs = [await bench.admit() for _ in range(5)]

        first, rest = await bench.claim(2), await bench.claim(10)

        assert [claimed.job.id for claimed in first] == [job.id for job in jobs[:2]]
        assert [claimed.job.id for claimed in rest] == [job.id for job in jobs[2:]]
        assert await bench.claim(10) == []

    async def test_a_claim_takes_only_its_lanes_in_one_order(self, bench: StoreBench) -> None:
        late_gpu = await bench.admit(lane="gpu", priority=4)
        cpu = await bench.admit(lane="cpu", priority=5)
        other = await bench.admit(lane="arm", priority=9)
        early_gpu = await bench.admit(lane="gpu", priority=6)

        taken = await bench.claim(10, "gpu", "cpu")

        assert [claimed.job.id for claimed in taken] == [early_gpu.id, cpu.id, late_gpu.id]
        assert (await bench.reread(other)).status is Status.QUEUED
        assert await bench.store.claim("w1", [], 10, LEASE_SECONDS) == []

    async def test_a_job_is_not_taken_before_it_is_due(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, retried(delay_seconds=5.0))

        bench.clock.advance(4.999)
        early = await bench.claim()
        bench.clock.advance(0.001)
        due = await bench.claim()

        assert early == []
        assert [again.lease for again in due] == [Lease(claimed.job.id, 2)]

    async def test_a_job_past_its_deadline_is_not_taken(self, bench: StoreBench) -> None:
        job = await bench.admit(deadline_seconds=10.0)
        bench.clock.advance(10.0)

        assert await bench.claim() == []
        assert (await bench.reread(job)).status is Status.QUEUED

    async def test_rival_workers_never_share_a_job(self, bench: StoreBench) -> None:
        jobs = [await bench.admit() for _ in range(30)]

        takes = await asyncio.gather(*(bench.claim(5, worker=f"w{number}") for number in range(8)))

        taken = [claimed.job.id for take in takes for claimed in take]
        assert sorted(taken) == sorted(job.id for job in jobs)

    async def test_started_at_is_that_of_the_first_attempt(self, bench: StoreBench) -> None:
        first = await bench.start()
        assert await bench.store.settle(first.lease, retried())
        bench.clock.advance(60.0)
        (second,) = await bench.claim()

        assert second.job.started_at == first.job.started_at
        assert second.job.epoch == 2


class BeatContract:
    """A sign of life, with what was reached since the last one."""

    async def test_a_beat_prolongs_the_lease(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.clock.advance(LEASE_SECONDS - 1)
        assert await bench.store.beat([Beat(lease=claimed.lease)], LEASE_SECONDS) == [_HELD]
        bench.clock.advance(LEASE_SECONDS - 1)
        within = await bench.store.expired(10)
        bench.clock.advance(1.0)

        assert within == []
        assert [lapsed.lease for lapsed in await bench.store.expired(10)] == [claimed.lease]

    async def test_a_beat_writes_stages_and_fraction(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        built, meshed = (
            Stage(name=name, at=bench.clock.now() + timedelta(milliseconds=number))
            for number, name in enumerate(("building", "meshing"))
        )
        bench.clock.advance(1.0)

        async with bench.expect_ring(job_topic(claimed.job.id), EVENTS):
            beat = Beat(lease=claimed.lease, stages=(built, meshed), fraction=0.25)
            assert await bench.store.beat([beat], LEASE_SECONDS) == [_HELD]

        job, log = await bench.reread(claimed.job), await bench.log(claimed.job)
        assert (job.stage, job.fraction, job.sequence) == ("meshing", 0.25, 4)
        assert types(log)[2:] == ["job.stage", "job.stage"]
        assert [event.body["stage"] for event in log[2:]] == ["building", "meshing"]
        assert log[2].body["reached_at"] == "2026-01-01T00:00:00.000Z"
        assert {event.at for event in log[2:]} == {bench.clock.now()}

    async def test_a_beat_without_news_keeps_what_is_known(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        told = Beat(lease=claimed.lease, stages=(Stage(name="meshing", at=bench.clock.now()),), fraction=0.5)
        await bench.store.beat([told], LEASE_SECONDS)

        async with bench.expect_silence(job_topic(claimed.job.id), EVENTS):
            await bench.store.beat([Beat(lease=claimed.lease)], LEASE_SECONDS)

        job = await bench.reread(claimed.job)
        assert (job.stage, job.fraction, job.sequence) == ("meshing", 0.5, 3)

    async def test_a_fraction_alone_rings_the_job_but_is_no_event(self, bench: StoreBench) -> None:
        claimed = await bench.start()

        async with bench.expect_ring(job_topic(claimed.job.id)):
            await bench.store.beat([Beat(lease=claimed.lease, fraction=0.75)], LEASE_SECONDS)

        job = await bench.reread(claimed.job)
        assert (job.fraction, job.sequence) == (0.75, 2)

    async def test_each_beat_of_a_batch_is_answered_on_its_own(self, bench: StoreBench) -> None:
        jobs = [await bench.admit() for _ in range(3)]
        kept, ended, asked = await bench.claim(3)
        assert await bench.store.settle(ended.lease, COMPLETED)
        assert await bench.store.cancel(jobs[2].account, asked.job.id)
        strangers = [Lease(kept.job.id, 2), Lease("cad_00000000000000000000000000", 1)]
        beats = [Beat(lease=lease) for lease in (kept.lease, ended.lease, asked.lease, *strangers)]

        answers = await bench.store.beat(beats, LEASE_SECONDS)

        lost = BeatAnswer(held=False, cancel_requested=False)
        assert answers == [_HELD, lost, BeatAnswer(held=True, cancel_requested=True), lost, lost]


class SettleContract:
    """The five endings."""

    async def test_completed_publishes_the_result(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.clock.advance(3.0)

        async with bench.expect_ring(job_topic(claimed.job.id), EVENTS):
            assert await bench.store.settle(claimed.lease, COMPLETED)

        job, event = await bench.reread(claimed.job), (await bench.log(claimed.job))[-1]
        assert (job.status, job.result, job.error) == (Status.COMPLETED, RESULT, None)
        assert (job.completed_at, job.usage, job.sequence) == (bench.clock.now(), USAGE, 3)
        assert (event.type, event.at, event.sequence) == ("job.completed", bench.clock.now(), 3)
        assert event.body["artifacts"][0]["sha256"] == RESULT.artifacts[0].sha256
        assert event.announce is not None
        assert event.announce["links"] == {"step": [job.id, "model.step"]}
        assert event.announce["webhook_url"] == job.request.webhook_url

    async def test_failed_tells_why(self, bench: StoreBench) -> None:
        claimed = await bench.start()

        assert await bench.store.settle(claimed.lease, Failed(error=BAD_FILLET, usage=USAGE))

        job, event = await bench.reread(claimed.job), (await bench.log(claimed.job))[-1]
        assert (job.status, job.result, job.error) == (Status.FAILED, None, BAD_FILLET)
        assert (job.completed_at, job.usage) == (bench.clock.now(), USAGE)
        assert (event.type, event.body["code"]) == ("job.failed", "FILLET_FAILED")

    async def test_canceled_ends_without_result_or_error(self, bench: StoreBench) -> None:
        claimed = await bench.start()

        assert await bench.store.settle(claimed.lease, Canceled(usage=USAGE))

        job, event = await bench.reread(claimed.job), (await bench.log(claimed.job))[-1]
        assert (job.status, job.result, job.error) == (Status.CANCELED, None, None)
        assert (job.completed_at, job.usage) == (bench.clock.now(), USAGE)
        assert event.type == "job.canceled"

    async def test_retried_queues_again_and_spends_the_right_budget(self, bench: StoreBench) -> None:
        first = await bench.start()
        beat = Beat(lease=first.lease, stages=(Stage(name="meshing", at=bench.clock.now()),), fraction=0.5)
        await bench.store.beat([beat], LEASE_SECONDS)

        async with bench.expect_ring(lane_topic(LANE), job_topic(first.job.id), EVENTS):
            assert await bench.store.settle(first.lease, retried(delay_seconds=1.5))
        once = await bench.reread(first.job)
        bench.clock.advance(1.5)
        (second,) = await bench.claim()
        assert await bench.store.settle(second.lease, retried(crash=True))
        twice = await bench.reread(first.job)

        assert (once.status, once.run_at) == (Status.QUEUED, first.job.run_at + timedelta(seconds=1.5))
        assert (once.crash_count, once.retry_count) == (0, 1)
        assert (twice.crash_count, twice.retry_count) == (1, 1)
        assert (once.completed_at, once.error, once.stage, once.fraction) == (None, None, None, None)
        event = (await bench.log(first.job))[3]
        assert (event.type, event.body["attempt"], event.body["code"]) == ("job.retrying", 1, "WORKER_LOST")
        assert event.body["retry_at"] == "2026-01-01T00:00:01.500Z"

    async def test_released_goes_back_at_once_and_spends_nothing(self, bench: StoreBench) -> None:
        claimed = await bench.start()

        async with bench.expect_ring(lane_topic(LANE)):
            assert await bench.store.settle(claimed.lease, Released())

        job, event = await bench.reread(claimed.job), (await bench.log(claimed.job))[-1]
        assert (job.status, job.run_at) == (Status.QUEUED, bench.clock.now())
        assert (job.crash_count, job.retry_count, job.usage) == (0, 0, Usage())
        assert (event.type, "code" in event.body) == ("job.retrying", False)
        assert [again.lease.epoch for again in await bench.claim()] == [2]

    async def test_stages_on_the_way_are_told_before_the_ending(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        stages = tuple(Stage(name=name, at=bench.clock.now()) for name in ("building", "checking"))

        assert await bench.store.settle(claimed.lease, Failed(error=BAD_FILLET, stages=stages))

        log = await bench.log(claimed.job)
        assert types(log)[2:] == ["job.stage", "job.stage", "job.failed"]
        assert [event.body["stage"] for event in log[2:4]] == ["building", "checking"]
        assert sequences(log) == [1, 2, 3, 4, 5]
        assert (await bench.reread(claimed.job)).stage == "checking"

    async def test_a_cancel_that_came_meanwhile_beats_a_retry(self, bench: StoreBench) -> None:
        """The client was told that its wish is on its way: the job must not come back from the queue."""
        for again in (retried(), Released()):
            claimed = await bench.start()
            await bench.store.cancel(claimed.job.account, claimed.job.id)

            assert await bench.store.settle(claimed.lease, again)

            job = await bench.reread(claimed.job)
            assert (job.status, job.completed_at) == (Status.CANCELED, bench.clock.now())
            assert types(await bench.log(job))[-1] == "job.canceled"

    async def test_a_cancel_that_came_meanwhile_does_not_undo_a_result(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        await bench.store.cancel(claimed.job.account, claimed.job.id)

        assert await bench.store.settle(claimed.lease, COMPLETED)

        assert (await bench.reread(claimed.job)).status is Status.COMPLETED
