"""A rental runs out while jobs are bound to it: one waits, and one has a kernel that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.core.clock import SystemClock
from tempa.jobs.lapse import Lapse
from tempa.jobs.model import Status
from tempa.jobs.perform import Performer
from tempa.jobs.ports import RunLimits
from tempa.settlement.quoting import Quoting
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import COMPLETED
from tempa.testing.contracts.settlement_steps import a_quote, an_instance, known, pay
from tempa.wiring.allowance import RentalAllowance

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tempa.jobs.model import Claimed
    from tempa.jobs.ports import Made, Order
    from tempa.testing.contracts.bench import StoreBench

GRACE = 600.0
PATIENCE_SECONDS = 10.0
TERMINAL = {"job.completed", "job.failed", "job.canceled"}


class NoMeter:
    """Counts nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class HangingEngine:
    name, module, life_cycle = "opencascade-brep", "nowhere", "fork"
    limits, takes = RunLimits(1.0, 1 << 20), ()


@dataclass
class HangingHost:
    """A kernel that comes to no end but by being killed."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    killed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.killed.set()
        raise AssertionError("it never ends by itself")


class NothingToProvide:
    async def provide(self, *_: object) -> None: ...


@pytest.fixture
def lapse(bench: StoreBench) -> Lapse:
    quoting = Quoting(store=bench.store, treasury=known(None), clock=bench.clock, lock_seconds=900)
    allowance = RentalAllowance(store=bench.store, clock=bench.clock, quoting=quoting)
    return Lapse(store=bench.store, allowance=allowance, wake=bench.wake, meter=cast("Any", NoMeter()))


def performer(bench: StoreBench, host: HangingHost, folder: Path) -> Performer:
    artifacts = LocalArtifacts(folder)
    artifacts.open()
    return Performer(
        store=bench.store,
        artifacts=artifacts,
        host=cast("Any", host),
        provider=cast("Any", NothingToProvide()),
        wake=bench.wake,
        clock=SystemClock(),
        engines={"opencascade-brep": cast("Any", HangingEngine())},
        meter=cast("Any", NoMeter()),
        rng=random.Random(1),
        lease_seconds=3_600.0,
        beat_seconds=1_800.0,  # it has to hear the ring
        max_crash_retries=1,
    )


async def rent(bench: StoreBench, gpu: str) -> None:
    """For an hour; in the grace, for one more from now."""
    await pay(bench, await a_quote(bench, gpu), 7_200)


async def ending_of(bench: StoreBench, claimed: Claimed) -> tuple[Status, str | None, list[str]]:
    job = await bench.reread(claimed.job)
    kinds = [kind for kind in types(await bench.log(job)) if kind in TERMINAL]
    return job.status, None if job.error is None else job.error.code, kinds


async def test_a_running_kernel_is_killed_and_a_waiting_job_fails_after_the_grace(
    bench: StoreBench, lapse: Lapse, tmp_path: Path
) -> None:
    gpu, host = await an_instance(bench), HangingHost()
    await rent(bench, gpu)
    claimed = await bench.start(gpu_instance_id=gpu, engine="opencascade-brep")
    waiting, free = await bench.admit(gpu_instance_id=gpu), await bench.admit()
    attempt = asyncio.create_task(
        performer(bench, host, tmp_path / "artifacts").perform(claimed, asyncio.Event())
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        await host.started.wait()
        bench.clock.advance(3_600)
        await bench.store.expire_rentals(0, GRACE, 10)
        assert await lapse.look() == 0, "the grace has begun"
        bench.clock.advance(GRACE)
        await bench.store.expire_rentals(0, GRACE, 10)

        assert await lapse.look() == 2
        await attempt

    assert host.killed.is_set()
    assert await ending_of(bench, claimed) == (Status.FAILED, "RENTAL_EXPIRED", ["job.failed"])
    assert not await bench.store.settle(claimed.lease, COMPLETED)
    failed = await bench.reread(waiting)
    assert failed.error is not None
    assert (failed.error.code, failed.error.detail) == ("RENTAL_EXPIRED", {"gpu_instance_id": gpu})
    assert (await bench.reread(free)).status is Status.QUEUED
    (told,) = [event.announce for event in await bench.log(failed) if event.type == "job.failed"]
    assert told is not None
    assert (told["data"]["job_id"], told["data"]["error_code"]) == (failed.id, "RENTAL_EXPIRED")
    assert await lapse.look() == 0


async def test_a_rental_that_is_prolonged_in_its_grace_lets_its_jobs_live(
    bench: StoreBench, lapse: Lapse
) -> None:
    gpu = await an_instance(bench)
    await rent(bench, gpu)
    running, waiting = await bench.start(gpu_instance_id=gpu), await bench.admit(gpu_instance_id=gpu)
    bench.clock.advance(3_600 + GRACE / 2)
    await bench.store.expire_rentals(0, GRACE, 10)

    await rent(bench, gpu)
    bench.clock.advance(GRACE)
    await bench.store.expire_rentals(0, GRACE, 10)

    assert await lapse.look() == 0
    assert (await bench.reread(running.job)).status is Status.PROCESSING
    assert (await bench.reread(waiting)).status is Status.QUEUED


async def test_of_a_result_and_the_lapse_in_the_same_moment_one_counts(
    bench: StoreBench, lapse: Lapse
) -> None:
    seen = set()
    for turn in range(20):
        gpu = await an_instance(bench)
        await rent(bench, gpu)
        claimed = await bench.start(gpu_instance_id=gpu)
        bench.clock.advance(3_600 + GRACE)
        await bench.store.expire_rentals(0, GRACE, 10)

        look, publish = lapse.look(), bench.store.settle(claimed.lease, COMPLETED)
        if turn % 2:
            ended = await asyncio.create_task(look)
            published = await publish
        else:
            ended, published = await asyncio.gather(look, publish)

        status, code, kinds = await ending_of(bench, claimed)
        assert (ended, published) in {(1, False), (0, True)}
        assert (status, code) == (
            (Status.COMPLETED, None) if published else (Status.FAILED, "RENTAL_EXPIRED")
        )
        assert len(kinds) == 1
        seen.add(status)
    assert seen == {Status.COMPLETED, Status.FAILED}, "the race was none"


async def test_the_role_ends_jobs_by_itself(bench: StoreBench, lapse: Lapse) -> None:
    gpu = await an_instance(bench)
    await rent(bench, gpu)
    job = await bench.admit(gpu_instance_id=gpu)
    bench.clock.advance(3_600 + GRACE)
    await bench.store.expire_rentals(0, GRACE, 10)
    stop = asyncio.Event()

    with bench.wake.listen(f"job:{job.id}") as bell, contextlib.ExitStack() as stack:
        role = asyncio.create_task(lapse.run(stop))
        stack.callback(stop.set)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await bench.reread(job)).status is Status.QUEUED:
                await bell.wait(PATIENCE_SECONDS)
            stop.set()
            await role

    assert (await bench.reread(job)).status is Status.FAILED
