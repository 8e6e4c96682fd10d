"""Contract of jobs that are bound to GPU instances: whose there are, and how they end with their rental."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.core.work import EVENTS, job_topic
from tempa.jobs.model import CancelOutcome, Failed, JobError, Status, Tenant
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import ACCOUNT, COMPLETED, LEASE_SECONDS, OTHER_ACCOUNT, retried

if TYPE_CHECKING:
    from tempa.jobs.model import Ending
    from tempa.testing.contracts.bench import StoreBench

RENTAL_EXPIRED = JobError(code="RENTAL_EXPIRED", message="It is over.", retryable=True)
TERMINAL = {"job.completed", "job.failed", "job.canceled"}


async def tenants(bench: StoreBench) -> list[Tenant]:
    """All of them, one after the other."""
    found: list[Tenant] = []
    while (tenant := await bench.store.next_tenant(found[-1] if found else None)) is not None:
        assert len(found) < 100, "it goes round in circles"
        found.append(tenant)
    return found


class BoundJobContract:
    """Found by account and instance while they are not finished."""

    async def test_a_job_keeps_its_instance(self, bench: StoreBench) -> None:
        gpu = new_id("gpu")
        bound, free = await bench.admit(gpu_instance_id=gpu), await bench.admit()

        assert (await bench.reread(bound)).request.gpu_instance_id == gpu
        assert (await bench.reread(free)).request.gpu_instance_id is None
        assert await tenants(bench) == [Tenant(ACCOUNT, gpu)]

    async def test_each_tenant_is_named_once_however_many_jobs_it_has(self, bench: StoreBench) -> None:
        first, second = sorted(new_id("gpu") for _ in range(2))
        for account, gpu in ((ACCOUNT, second), (OTHER_ACCOUNT, first), (ACCOUNT, first)) * 3:
            await bench.admit(account=account, gpu_instance_id=gpu)
        await bench.admit()

        shown = await tenants(bench)

        assert set(shown) == {Tenant(ACCOUNT, first), Tenant(OTHER_ACCOUNT, first), Tenant(ACCOUNT, second)}
        assert len(shown) == 3

    async def test_a_tenants_jobs_are_its_own_oldest_first_as_they_are_now(self, bench: StoreBench) -> None:
        gpu = new_id("gpu")
        running = await bench.start(gpu_instance_id=gpu)
        waiting = [await bench.admit(gpu_instance_id=gpu, priority=9) for _ in range(2)]
        await bench.admit(gpu_instance_id=new_id("gpu"))
        await bench.admit(gpu_instance_id=gpu, account=OTHER_ACCOUNT)
        await bench.admit()
        tenant = Tenant(ACCOUNT, gpu)

        assert await bench.store.bound_jobs(tenant, 10) == [running.job, *waiting]
        assert await bench.store.bound_jobs(tenant, 2) == [running.job, waiting[0]]

    async def test_a_finished_job_is_bound_to_nothing(self, bench: StoreBench) -> None:
        gpu = new_id("gpu")
        completed = await bench.start(gpu_instance_id=gpu)
        assert await bench.store.settle(completed.lease, COMPLETED)
        again = await bench.start(gpu_instance_id=gpu)
        assert await bench.store.settle(again.lease, retried())
        assert await bench.store.bound_jobs(Tenant(ACCOUNT, gpu), 10) == [await bench.reread(again.job)]

        assert await bench.store.fail_queued(again.job.id, RENTAL_EXPIRED)
        canceled = await bench.admit(gpu_instance_id=gpu)
        await bench.store.cancel(ACCOUNT, canceled.id)

        assert await tenants(bench) == []
        assert await bench.store.bound_jobs(Tenant(ACCOUNT, gpu), 10) == []


class RentalEndContract:
    """A running job is ended in its worker's place, by the fence that its worker writes behind."""

    async def test_the_worker_finds_its_lease_gone_and_publishes_nothing(self, bench: StoreBench) -> None:
        claimed = await bench.start(gpu_instance_id=new_id("gpu"))

        async with bench.expect_ring(job_topic(claimed.job.id), EVENTS):
            assert await bench.store.settle(claimed.lease, Failed(error=RENTAL_EXPIRED))

        assert not await bench.store.settle(claimed.lease, COMPLETED)
        assert not await bench.store.settle(claimed.lease, retried())
        ended = await bench.reread(claimed.job)
        assert (ended.status, ended.error, ended.result) == (Status.FAILED, RENTAL_EXPIRED, None)
        assert types(await bench.log(ended)) == ["job.queued", "job.started", "job.failed"]
        (failed,) = [event for event in await bench.log(ended) if event.type == "job.failed"]
        assert failed.announce is not None
        assert failed.announce["data"]["error_code"] == "RENTAL_EXPIRED"

    async def test_of_a_result_and_the_end_of_the_rental_at_once_one_is_written(
        self, bench: StoreBench
    ) -> None:
        gpu, winners = new_id("gpu"), set()
        for turn in range(20):
            claimed = await bench.start(gpu_instance_id=gpu)
            endings: list[Ending] = [COMPLETED, Failed(error=RENTAL_EXPIRED)]
            if turn % 2:
                endings.reverse()

            written = await asyncio.gather(*(bench.store.settle(claimed.lease, ending) for ending in endings))

            ended = await bench.reread(claimed.job)
            assert sorted(written) == [False, True]
            assert ended.status is (
                Status.COMPLETED if endings[written.index(True)] is COMPLETED else Status.FAILED
            )
            assert len([kind for kind in types(await bench.log(ended)) if kind in TERMINAL]) == 1
            winners.add(ended.status)
        assert winners == {Status.COMPLETED, Status.FAILED}, "the race was none"

    async def test_an_attempt_that_began_meanwhile_is_not_ended_unseen(self, bench: StoreBench) -> None:
        gpu = new_id("gpu")
        await bench.start(gpu_instance_id=gpu)
        (seen,) = await bench.store.bound_jobs(Tenant(ACCOUNT, gpu), 10)
        bench.clock.advance(LEASE_SECONDS + 0.001)
        (lapsed,) = await bench.store.expired(10)
        assert await bench.store.take_over(lapsed.lease, retried(crash=True))
        (second,) = await bench.claim()

        assert not await bench.store.settle(lapsed.lease, Failed(error=RENTAL_EXPIRED))
        assert not await bench.store.fail_queued(seen.id, RENTAL_EXPIRED)
        assert await bench.store.settle(second.lease, Failed(error=RENTAL_EXPIRED))

    async def test_a_cancel_that_is_on_its_way_does_not_undo_it(self, bench: StoreBench) -> None:
        claimed = await bench.start(gpu_instance_id=new_id("gpu"))
        answer = await bench.store.cancel(ACCOUNT, claimed.job.id)
        assert answer is not None
        assert answer[0] is CancelOutcome.REQUESTED

        assert await bench.store.settle(claimed.lease, Failed(error=RENTAL_EXPIRED))

        assert (await bench.reread(claimed.job)).status is Status.FAILED
