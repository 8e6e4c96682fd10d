"""One process publishes a result while another ends the rental: on PostgreSQL they truly meet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from tempa.jobs.lapse import Lapse
from tempa.jobs.model import Status, Tenant
from tempa.settlement.quoting import Quoting
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import ACCOUNT, COMPLETED
from tempa.testing.contracts.settlement_steps import a_quote, an_instance, pay
from tempa.wiring.allowance import RentalAllowance

if TYPE_CHECKING:
    from tempa.jobs.model import Claimed
    from tempa.testing.contracts.bench import StoreBench

ROUNDS, JOBS = 10, 12
GRACE = 600.0
TERMINAL = {"job.completed", "job.failed", "job.canceled"}


class NoMeter:
    """Counts nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


def lapse_of(bench: StoreBench) -> Lapse:
    quoting = Quoting(store=bench.store, treasury=None, clock=bench.clock, lock_seconds=900)
    allowance = RentalAllowance(store=bench.store, clock=bench.clock, quoting=quoting)
    return Lapse(store=bench.store, allowance=allowance, wake=bench.wake, meter=cast("Any", NoMeter()))


async def publish(bench: StoreBench, running: list[Claimed]) -> int:
    """How many results were published."""
    return sum([await bench.store.settle(claimed.lease, COMPLETED) for claimed in running])


async def test_each_job_ends_once_whoever_is_first(benches: tuple[StoreBench, StoreBench]) -> None:
    worker, rescuer = benches
    seen: set[Status] = set()
    for _ in range(ROUNDS):
        gpu = await an_instance(worker)
        await pay(worker, await a_quote(worker, gpu), 7_200)
        jobs = [await worker.admit(gpu_instance_id=gpu) for _ in range(JOBS)]
        running = await worker.claim(JOBS // 2)
        worker.clock.advance(3_600 + GRACE)
        await worker.store.expire_rentals(0, GRACE, 10)

        ended, published = await asyncio.gather(lapse_of(rescuer).look(), publish(worker, running[::-1]))

        ended += await lapse_of(rescuer).look()  # what changed hands in between
        assert ended + published == JOBS
        assert await rescuer.store.bound_jobs(Tenant(ACCOUNT, gpu), 100) == []
        for job in jobs:
            kinds = [kind for kind in types(await worker.log(job)) if kind in TERMINAL]
            assert len(kinds) == 1
            seen.add((await worker.reread(job)).status)
    assert seen == {Status.COMPLETED, Status.FAILED}, "they never met"


async def test_two_processes_that_look_at_once_end_each_job_once(
    benches: tuple[StoreBench, StoreBench],
) -> None:
    gpu = await an_instance(benches[0])
    await pay(benches[0], await a_quote(benches[0], gpu), 7_200)
    jobs = [await benches[0].admit(gpu_instance_id=gpu) for _ in range(JOBS)]
    await benches[0].claim(JOBS // 2)
    benches[0].clock.advance(3_600 + GRACE)
    await benches[0].store.expire_rentals(0, GRACE, 10)

    ended = await asyncio.gather(*(lapse_of(bench).look() for bench in benches))

    assert sum(ended) == JOBS
    for job in jobs:
        assert types(await benches[0].log(job))[-1:] == ["job.failed"]
