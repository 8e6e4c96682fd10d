"""The rescuer: jobs whose worker is lost, and jobs that waited past their deadline."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.jobs.model import (
    Canceled,
    Claimed,
    Ending,
    Failed,
    Job,
    JobError,
    Lease,
    Released,
    Retried,
    Status,
    Usage,
)
from tempa.jobs.rescue import Rescuer
from tests.unit.jobs.samples import PATIENCE_SECONDS, Tally, a_job

if TYPE_CHECKING:
    from tempa.jobs.ports import ArtifactStore, JobStore


@dataclass
class LostStore:
    """Jobs whose lease has run out, and queued ones past their deadline; each ends once.

    Of those in `back`, the worker came back in the last moment.
    """

    lost: dict[str, Claimed] = field(default_factory=dict)
    late: dict[str, Job] = field(default_factory=dict)
    back: set[str] = field(default_factory=set)
    away: int = 0  # this often it cannot be reached
    endings: dict[str, Ending] = field(default_factory=dict)
    failed: dict[str, JobError] = field(default_factory=dict)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def lose(self, number: int, **changes: object) -> str:
        job = a_job(id=f"cad_{number:026}", epoch=3, **changes)
        self.lost[job.id] = Claimed(Lease(job.id, job.epoch), job)
        return job.id

    async def expired(self, limit: int) -> list[Claimed]:
        if self.away:
            self.away -= 1
            raise StoreUnavailable
        return list(self.lost.values())[:limit]

    async def take_over(self, lease: Lease, ending: Ending) -> bool:
        claimed = self.lost.pop(lease.job_id)
        assert lease == claimed.lease
        if lease.job_id in self.back:
            return False
        self.endings[lease.job_id] = ending
        return True

    async def overdue(self, limit: int) -> list[Job]:
        if not self.late:
            self.idle.set()
        return list(self.late.values())[:limit]

    async def fail_queued(self, job_id: str, error: JobError) -> bool:
        del self.late[job_id]
        if job_id in self.back:
            return False
        self.failed[job_id] = error
        return True


@dataclass
class Shelf:
    """What was deleted; `sick`: nothing can be."""

    deleted: list[str] = field(default_factory=list)
    sick: bool = False

    async def delete(self, prefix: str) -> None:
        if self.sick:
            raise OSError(5, "Input/output error")
        self.deleted.append(prefix)


@dataclass
class Bench:
    """A rescuer and what it touches."""

    store: LostStore = field(default_factory=LostStore)
    shelf: Shelf = field(default_factory=Shelf)
    tally: Tally = field(default_factory=Tally)

    def rescuer(self) -> Rescuer:
        return Rescuer(
            store=cast("JobStore", self.store),
            artifacts=cast("ArtifactStore", self.shelf),
            meter=self.tally,
            rng=random.Random(1),
            max_crash_retries=1,
            every_seconds=0.0,
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_job_whose_worker_is_lost_is_tried_once_more(bench: Bench) -> None:
    first, second = bench.store.lose(1), bench.store.lose(2, crash_count=1)

    assert await bench.rescuer().rescue() == 2

    again, over = bench.store.endings[first], bench.store.endings[second]
    assert isinstance(again, Retried)
    assert (again.error.code, again.crash, again.delay_seconds) == ("WORKER_LOST", True, 0.0)
    assert isinstance(over, Failed)
    assert over.error.code == "WORKER_LOST"
    assert bench.tally.counted["tempa_jobs_rescued_total"] == 2


async def test_what_a_lost_worker_used_is_nobodys_to_pay(bench: Bench) -> None:
    lost = [
        bench.store.lose(1),
        bench.store.lose(2, crash_count=1),
        bench.store.lose(3, cancel_requested=True),
    ]

    await bench.rescuer().rescue()

    endings = [bench.store.endings[job_id] for job_id in lost]
    assert [type(ending) for ending in endings] == [Retried, Failed, Canceled]
    assert all(not isinstance(ending, Released) and ending.usage == Usage() for ending in endings)


async def test_files_of_a_lost_attempt_go_and_of_one_that_came_back_stay(bench: Bench) -> None:
    lost, back = bench.store.lose(1), bench.store.lose(2)
    bench.store.back.add(back)

    await bench.rescuer().rescue()

    assert bench.shelf.deleted == [f"{lost}.a3"]


async def test_files_that_cannot_be_deleted_hold_up_no_rescue(bench: Bench) -> None:
    bench.shelf.sick = True
    lost = [bench.store.lose(number) for number in range(3)]

    assert await bench.rescuer().rescue() == 3
    assert sorted(bench.store.endings) == lost


@pytest.mark.parametrize("crash_count", [0, 1])
async def test_a_job_that_was_canceled_before_its_worker_was_lost_ends_canceled(
    bench: Bench, crash_count: int
) -> None:
    job_id = bench.store.lose(1, cancel_requested=True, crash_count=crash_count)

    await bench.rescuer().rescue()

    assert bench.store.endings == {job_id: Canceled()}


async def test_a_worker_that_came_back_keeps_its_job(bench: Bench) -> None:
    job_id = bench.store.lose(1)
    bench.store.back.add(job_id)

    assert await bench.rescuer().rescue() == 0

    assert bench.store.endings == {}
    assert bench.tally.counted["tempa_jobs_rescued_total"] == 0


async def test_more_than_a_batch_is_rescued_in_one_round(bench: Bench) -> None:
    for number in range(250):
        bench.store.lose(number)

    assert await bench.rescuer().rescue() == 250

    assert len(bench.store.endings) == 250


async def test_what_waited_past_its_deadline_fails(bench: Bench) -> None:
    late = [a_job(id=f"cad_{number:026}", status=Status.QUEUED, epoch=0) for number in range(150)]
    bench.store.late = {job.id: job for job in late}
    bench.store.back = {late[0].id}  # taken by a worker in the last moment

    assert await bench.rescuer().expire() == 149

    assert bench.store.failed.keys() == {job.id for job in late[1:]}
    assert {(error.code, error.retryable) for error in bench.store.failed.values()} == {
        ("DEADLINE_EXCEEDED", True)
    }


async def test_it_goes_on_when_the_store_is_back_and_does_both(bench: Bench) -> None:
    job_id = bench.store.lose(1)
    late = a_job(id="cad_late", status=Status.QUEUED, epoch=0)
    bench.store.late[late.id] = late
    bench.store.away = 2
    stop = asyncio.Event()

    async with asyncio.timeout(PATIENCE_SECONDS):
        role = asyncio.create_task(bench.rescuer().run(stop))
        await bench.store.idle.wait()
        stop.set()
        await role

    assert bench.store.endings.keys() == {job_id}
    assert bench.store.failed.keys() == {late.id}
