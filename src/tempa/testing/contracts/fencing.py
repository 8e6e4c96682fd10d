"""Contract of the fence: who lost a lease writes nothing, whatever he does and whenever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.events import TERMINAL_EVENTS
from tempa.jobs.model import (
    STEP_OF_ENDING,
    TRANSITIONS,
    Beat,
    CancelOutcome,
    Completed,
    Failed,
    Lease,
    Result,
    Stage,
    Status,
    Usage,
)
from tempa.testing.contracts.bench import sequences, types
from tempa.testing.contracts.samples import (
    BAD_FILLET,
    COMPLETED,
    ENDINGS,
    LEASE_SECONDS,
    RESULT,
    TOO_LATE,
    USAGE,
    WORKER_LOST,
    a_key,
    retried,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench

_FORGED = Completed(result=Result(artifacts=(), measurements={"forged": True}), usage=Usage())


class FencingContract:
    """Zombies, strangers, and every transition that the state machine does not know."""

    async def test_a_zombie_publishes_nothing(self, bench: StoreBench) -> None:
        """Its lease ran out, the job was taken over and runs again: then the first worker wakes up."""
        zombie = await bench.start()
        bench.let_lapse()
        assert await bench.store.take_over(zombie.lease, retried(crash=True))
        (heir,) = await bench.claim(worker="w2")

        late_beat = Beat(lease=zombie.lease, stages=(Stage(name="late", at=bench.clock.now()),), fraction=1.0)
        (answer,) = await bench.store.beat([late_beat], LEASE_SECONDS)
        settled = [await bench.store.settle(zombie.lease, ending) for ending in (_FORGED, *ENDINGS)]
        assert await bench.store.settle(heir.lease, COMPLETED)

        job, log = await bench.reread(zombie.job), await bench.log(zombie.job)
        assert not answer.held
        assert not any(settled)
        assert (job.status, job.result, job.epoch) == (Status.COMPLETED, RESULT, 2)
        assert types(log) == ["job.queued", "job.started", "job.retrying", "job.started", "job.completed"]
        assert sequences(log) == [1, 2, 3, 4, 5]

    async def test_what_the_state_machine_does_not_know_cannot_happen(self, bench: StoreBench) -> None:
        for status in Status:
            for ending in ENDINGS:
                job, lease = await bench.in_status(status)
                log = await bench.log(job)
                known = (status, STEP_OF_ENDING[type(ending)]) in TRANSITIONS

                allowed = status is Status.PROCESSING and known
                assert await bench.store.settle(lease, ending) is allowed, (status, ending)

                if not allowed:
                    assert await bench.reread(job) == job, (status, ending)
                    assert await bench.log(job) == log, (status, ending)

    async def test_nothing_is_taken_over_that_does_not_run(self, bench: StoreBench) -> None:
        for status in set(Status) - {Status.PROCESSING}:
            job, lease = await bench.in_status(status)
            log = await bench.log(job)
            bench.let_lapse()

            assert not await bench.store.take_over(lease, retried(crash=True)), status

            assert (await bench.reread(job), await bench.log(job)) == (job, log)

    async def test_a_beat_moves_nothing_that_does_not_run(self, bench: StoreBench) -> None:
        for status in set(Status) - {Status.PROCESSING}:
            job, lease = await bench.in_status(status)
            log = await bench.log(job)
            beat = Beat(lease=lease, stages=(Stage(name="late", at=bench.clock.now()),), fraction=0.9)

            (answer,) = await bench.store.beat([beat], LEASE_SECONDS)

            assert not answer.held, status
            assert (await bench.reread(job), await bench.log(job)) == (job, log)

    async def test_only_what_is_queued_fails_in_the_queue(self, bench: StoreBench) -> None:
        for status in Status:
            job, _ = await bench.in_status(status)
            log = await bench.log(job)

            failed = await bench.store.fail_queued(job.id, TOO_LATE)

            assert failed is (status is Status.QUEUED)
            if not failed:
                assert (await bench.reread(job), await bench.log(job)) == (job, log)

    async def test_no_lease_holds_on_a_job_that_was_never_taken(self, bench: StoreBench) -> None:
        job = await bench.admit()
        lease = Lease(job.id, job.epoch)

        assert not await bench.store.settle(lease, COMPLETED)
        assert not await bench.store.take_over(lease, retried(crash=True))
        (answer,) = await bench.store.beat([Beat(lease=lease)], LEASE_SECONDS)

        assert not answer.held
        assert await bench.reread(job) == job

    async def test_no_lease_holds_on_a_job_that_is_not_there(self, bench: StoreBench) -> None:
        lease = Lease("cad_00000000000000000000000000", 1)

        assert not await bench.store.settle(lease, COMPLETED)
        assert not await bench.store.take_over(lease, retried(crash=True))
        assert not await bench.store.fail_queued(lease.job_id, TOO_LATE)

    async def test_an_epoch_not_given_yet_opens_nothing(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        ahead = replace(claimed.lease, epoch=2)

        assert not await bench.store.settle(ahead, COMPLETED)
        assert (await bench.reread(claimed.job)).status is Status.PROCESSING


class TakeoverContract:
    """Leases that run out."""

    async def test_a_lease_runs_out_when_its_time_has_passed(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.clock.advance(LEASE_SECONDS - 0.001)
        within = await bench.store.expired(10)
        bench.clock.advance(0.001)
        (lapsed,) = await bench.store.expired(10)

        assert within == []
        assert (lapsed.lease, lapsed.job) == (claimed.lease, claimed.job)

    async def test_the_longest_over_come_first_up_to_the_limit(self, bench: StoreBench) -> None:
        started = []
        for _ in range(3):
            started.append(await bench.start())
            bench.clock.advance(1.0)
        bench.let_lapse()

        assert [lapsed.lease for lapsed in await bench.store.expired(2)] == [one.lease for one in started[:2]]

    async def test_a_takeover_writes_what_the_ending_says(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.let_lapse()

        assert await bench.store.take_over(claimed.lease, Failed(error=WORKER_LOST, usage=USAGE))

        job = await bench.reread(claimed.job)
        assert (job.status, job.error) == (Status.FAILED, WORKER_LOST)
        assert await bench.store.expired(10) == []

    async def test_a_lease_that_still_holds_is_not_taken_over(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.clock.advance(LEASE_SECONDS - 0.001)

        assert not await bench.store.take_over(claimed.lease, retried(crash=True))

        assert await bench.reread(claimed.job) == claimed.job

    async def test_a_beat_between_the_look_and_the_takeover_wins(self, bench: StoreBench) -> None:
        """The rescuer decides on what it saw; the store decides on what is (riverqueue/river#1302)."""
        claimed = await bench.start()
        bench.let_lapse()
        (seen,) = await bench.store.expired(10)
        (answer,) = await bench.store.beat([Beat(lease=claimed.lease)], LEASE_SECONDS)

        assert answer.held
        assert not await bench.store.take_over(seen.lease, retried(crash=True))
        assert await bench.store.settle(claimed.lease, COMPLETED)

    async def test_a_result_between_the_look_and_the_takeover_wins(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.let_lapse()
        (seen,) = await bench.store.expired(10)
        assert await bench.store.settle(claimed.lease, COMPLETED)

        assert not await bench.store.take_over(seen.lease, Failed(error=WORKER_LOST))

        assert (await bench.reread(claimed.job)).status is Status.COMPLETED

    async def test_of_worker_and_rescuer_at_once_one_wins(self, bench: StoreBench) -> None:
        for _ in range(20):
            claimed = await bench.start()
            bench.let_lapse()

            won = await asyncio.gather(
                bench.store.take_over(claimed.lease, Failed(error=WORKER_LOST)),
                bench.store.settle(claimed.lease, COMPLETED),
                bench.store.take_over(claimed.lease, Failed(error=BAD_FILLET)),
            )

            log = await bench.log(claimed.job)
            assert won.count(True) == 1
            assert sequences(log) == [1, 2, 3]
            assert len([event for event in log if event.type in TERMINAL_EVENTS]) == 1

    async def test_a_result_after_the_lease_ran_out_counts_if_nobody_took_over(
        self, bench: StoreBench
    ) -> None:
        """Minutes of work are not thrown away because a beat was late; the epoch keeps it safe."""
        claimed = await bench.start()
        bench.let_lapse()

        assert await bench.store.settle(claimed.lease, COMPLETED)

    async def test_voiding_expires_every_lease_at_once(self, bench: StoreBench) -> None:
        started = [await bench.start() for _ in range(3)]
        ended = await bench.start()
        assert await bench.store.settle(ended.lease, COMPLETED)
        waiting = await bench.admit(key=a_key())

        assert await bench.store.void_leases() == 3

        lapsed = await bench.store.expired(10)
        assert {one.lease for one in lapsed} == {one.lease for one in started}
        assert await bench.store.take_over(started[0].lease, retried(crash=True))
        assert (await bench.reread(waiting)).status is Status.QUEUED

    async def test_a_canceled_job_whose_worker_is_lost_ends_canceled(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        answer = await bench.store.cancel(claimed.job.account, claimed.job.id)
        assert answer is not None
        assert answer[0] is CancelOutcome.REQUESTED
        bench.let_lapse()

        assert await bench.store.take_over(claimed.lease, retried(crash=True))

        assert (await bench.reread(claimed.job)).status is Status.CANCELED
