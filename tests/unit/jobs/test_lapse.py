"""The end of a rental: what is bound to the instance fails, once, and nothing else does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.errors import Refusal, StoreUnavailable
from tempa.core.work import cancel_topic
from tempa.jobs.lapse import Lapse
from tempa.jobs.model import Ending, Failed, Job, JobError, Lease, Status, Tenant, Tenure
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import PATIENCE_SECONDS, Tally, a_job, a_request

if TYPE_CHECKING:
    from tempa.jobs.ports import JobStore

GONE, THERE = Tenant("acme", "gpu_gone"), Tenant("acme", "gpu_there")


@dataclass
class BoundStore:
    """Unfinished jobs by tenant. Those in `lost` change hands in the moment they are to be ended."""

    jobs: dict[str, Job] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    away: int = 0  # this often it cannot be reached
    failed: dict[str, JobError] = field(default_factory=dict)
    endings: dict[Lease, Ending] = field(default_factory=dict)
    looks: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def bind(self, tenant: Tenant, number: int, status: Status = Status.QUEUED, epoch: int = 0) -> Job:
        request = a_request(gpu_instance_id=tenant.gpu_instance_id)
        job = a_job(
            id=f"cad_{number:026}", account=tenant.account, request=request, status=status, epoch=epoch
        )
        self.jobs[job.id] = job
        return job

    async def next_tenant(self, after: Tenant | None) -> Tenant | None:
        if self.away:
            self.away -= 1
            raise StoreUnavailable
        tenants = sorted({tenant_of(job) for job in self.jobs.values()})
        tenant = next((tenant for tenant in tenants if after is None or tenant > after), None)
        if tenant is None:
            self.idle.set()
        return tenant

    async def bound_jobs(self, tenant: Tenant, limit: int) -> list[Job]:
        self.looks += 1
        return [job for job in self.jobs.values() if tenant_of(job) == tenant][:limit]

    async def fail_queued(self, job_id: str, error: JobError) -> bool:
        assert self.jobs[job_id].status is Status.QUEUED
        if job_id in self.lost:
            return False
        del self.jobs[job_id]
        self.failed[job_id] = error
        return True

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        job = self.jobs[lease.job_id]
        assert (job.status, job.epoch) == (Status.PROCESSING, lease.epoch)
        if lease.job_id in self.lost:
            return False
        del self.jobs[lease.job_id]
        self.endings[lease] = ending
        return True


def tenant_of(job: Job) -> Tenant:
    assert job.request.gpu_instance_id is not None
    return Tenant(job.account, job.request.gpu_instance_id)


@dataclass
class Rentals:
    """How each tenant stands."""

    tenures: dict[Tenant, Tenure] = field(default_factory=lambda: {GONE: Tenure.OVER, THERE: Tenure.ACTIVE})
    asked: list[Tenant] = field(default_factory=list)

    async def tenure(self, tenant: Tenant) -> Tenure:
        self.asked.append(tenant)
        return self.tenures[tenant]

    async def refusal(self, tenant: Tenant) -> Refusal:
        raise NotImplementedError


@dataclass
class Bench:
    """A lapse and what it touches."""

    store: BoundStore = field(default_factory=BoundStore)
    rentals: Rentals = field(default_factory=Rentals)
    wake: InProcessWake = field(default_factory=lambda: InProcessWake(ManualClock()))
    tally: Tally = field(default_factory=Tally)

    def lapse(self) -> Lapse:
        return Lapse(
            store=cast("JobStore", self.store),
            allowance=self.rentals,
            wake=self.wake,
            meter=self.tally,
            every_seconds=0.0,
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_what_waits_fails_with_the_instance_named(bench: Bench) -> None:
    jobs = [bench.store.bind(GONE, number) for number in range(3)]

    assert await bench.lapse().look() == 3

    assert bench.store.failed.keys() == {job.id for job in jobs}
    for error in bench.store.failed.values():
        assert (error.code, error.retryable) == ("RENTAL_EXPIRED", True)
        assert error.detail == {"gpu_instance_id": "gpu_gone"}


async def test_what_runs_is_ended_under_its_fence_and_its_worker_is_rung(bench: Bench) -> None:
    job = bench.store.bind(GONE, 1, Status.PROCESSING, epoch=3)

    with bench.wake.listen(cancel_topic(job.id)) as bell:
        assert await bench.lapse().look() == 1
        assert await bell.wait(0)

    (ending,) = bench.store.endings.values()
    assert list(bench.store.endings) == [Lease(job.id, 3)]
    assert isinstance(ending, Failed)
    assert ending.error.code == "RENTAL_EXPIRED"
    assert bench.tally.counted == {"tempa_jobs_ended_total": 1}


@pytest.mark.parametrize("tenure", [Tenure.ACTIVE, Tenure.HELD])
async def test_what_is_paid_for_or_in_its_grace_goes_on(bench: Bench, tenure: Tenure) -> None:
    bench.rentals.tenures[THERE] = tenure
    bench.store.bind(THERE, 1)
    bench.store.bind(THERE, 2, Status.PROCESSING, epoch=1)
    ended = bench.store.bind(GONE, 3)

    assert await bench.lapse().look() == 1

    assert bench.store.failed.keys() == {ended.id}
    assert len(bench.store.jobs) == 2


async def test_the_same_question_is_asked_once(bench: Bench) -> None:
    other = Tenant("globex", "gpu_there")
    bench.rentals.tenures[other] = Tenure.OVER
    for number in range(9):
        bench.store.bind((GONE, THERE, other)[number % 3], number)

    assert await bench.lapse().look() == 6

    assert sorted(bench.rentals.asked) == [GONE, THERE, other]


@pytest.mark.parametrize(("status", "epoch"), [(Status.QUEUED, 0), (Status.PROCESSING, 1)])
async def test_what_ended_in_the_same_moment_is_left_and_looked_at_again(
    bench: Bench, status: Status, epoch: int
) -> None:
    job = bench.store.bind(GONE, 1, status, epoch)
    bench.store.lost = {job.id}

    with bench.wake.listen(cancel_topic(job.id)) as bell:
        assert await bench.lapse().look() == 0
        assert not await bell.wait(0)
    assert (bench.store.looks, bench.tally.counted) == (1, {})

    bench.store.lost.clear()
    assert await bench.lapse().look() == 1


async def test_more_than_a_batch_ends_in_one_look(bench: Bench) -> None:
    for number in range(250):
        bench.store.bind(GONE, number)

    assert await bench.lapse().look() == 250

    assert bench.store.jobs == {}


async def test_it_goes_on_when_the_store_is_back(bench: Bench) -> None:
    job = bench.store.bind(GONE, 1)
    bench.store.away = 2
    stop = asyncio.Event()

    async with asyncio.timeout(PATIENCE_SECONDS):
        role = asyncio.create_task(bench.lapse().run(stop))
        await bench.store.idle.wait()
        stop.set()
        await role

    assert bench.store.failed.keys() == {job.id}
