"""Direct dispatch: what is admitted while a slot is free is claimed in the same commit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.core.errors import StoreUnavailable
from tempa.core.work import lane_topic
from tempa.jobs.model import Status, Verdict
from tempa.testing.contracts.samples import ACCOUNT, LANE, LEASE_SECONDS, OTHER_ACCOUNT, a_key, a_new_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.jobs.model import Claimed
    from tempa.testing.contracts.store import StoreBench


PATIENCE_SECONDS = 20.0


@dataclass
class Hands:
    """A worker that stands by with `free` slots."""

    free: int = 1
    worker_id: str = "w1"
    lanes: tuple[str, ...] = (LANE,)
    lease_seconds: float = LEASE_SECONDS
    kept: int = 0
    taken: list[Claimed] = field(default_factory=list)
    reserved: asyncio.Event = field(default_factory=asyncio.Event)
    given: asyncio.Event = field(default_factory=asyncio.Event)

    def reserve(self, lane: str) -> bool:
        if lane not in self.lanes or self.free <= self.kept:
            return False
        self.kept += 1
        self.reserved.set()
        return True

    def take(self, claimed: Sequence[Claimed]) -> None:
        self.kept -= 1
        self.free -= len(claimed)
        self.taken.extend(claimed)
        self.given.set()


def store_of(bench: StoreBench) -> SqliteStore:
    assert isinstance(bench.store, SqliteStore)
    return bench.store


async def test_it_is_claimed_in_the_commit_that_admits_it(bench: StoreBench) -> None:
    store, hands = store_of(bench), Hands()
    await bench.admit(lane="warm-up")  # opens the writer's connection
    before = store.writes.commits
    with store.stand_by(hands):
        async with bench.expect_silence(lane_topic(LANE)):
            admission = await store.admit(a_new_job(bench.clock))

    (claimed,) = hands.taken
    job = await bench.reread(admission.job)
    assert store.writes.commits - before == 1
    assert (admission.verdict, admission.job.status) == (Verdict.ADMITTED, Status.QUEUED)
    assert (job.id, job.status, job.epoch) == (claimed.lease.job_id, Status.PROCESSING, claimed.lease.epoch)
    assert [event.type for event in await bench.log(job)] == ["job.queued", "job.started"]
    assert await bench.claim() == []


async def test_without_a_free_slot_it_waits_and_its_lane_is_rung(bench: StoreBench) -> None:
    store, hands = store_of(bench), Hands(free=0)
    with store.stand_by(hands):
        async with bench.expect_ring(lane_topic(LANE)):
            job = await bench.admit()

    assert (hands.taken, (await bench.reread(job)).status) == ([], Status.QUEUED)


async def test_another_lane_is_left_alone(bench: StoreBench) -> None:
    hands = Hands()
    with store_of(bench).stand_by(hands):
        job = await bench.admit(lane="gpu")

    assert (hands.taken, hands.kept, (await bench.reread(job)).status) == ([], 0, Status.QUEUED)


async def test_the_slot_goes_to_whose_turn_it_is(bench: StoreBench) -> None:
    """A job of an account that had no turn yet waits: it comes before the one that is admitted."""
    await bench.start(account=ACCOUNT)
    hands = Hands()
    waiting = await bench.admit(account=OTHER_ACCOUNT)
    with store_of(bench).stand_by(hands):
        async with bench.expect_ring(lane_topic(LANE)):
            new = await bench.admit(account=ACCOUNT)

    assert [one.job.id for one in hands.taken] == [waiting.id]
    assert (await bench.reread(new)).status is Status.QUEUED


async def test_a_replay_claims_nothing_and_gives_the_slot_back(bench: StoreBench) -> None:
    store, hands, key = store_of(bench), Hands(free=5), a_key()
    with store.stand_by(hands):
        first = await store.admit(a_new_job(bench.clock, key=key))
        again = await store.admit(a_new_job(bench.clock, key=key))

    assert (again.verdict, again.job.id) == (Verdict.REPLAYED, first.job.id)
    assert (len(hands.taken), hands.kept, hands.free) == (1, 0, 4)


async def test_many_at_once_fill_the_slots_and_no_more(bench: StoreBench) -> None:
    store, hands = store_of(bench), Hands(free=3)
    with store.stand_by(hands):
        await asyncio.gather(*(store.admit(a_new_job(bench.clock)) for _ in range(20)))

    assert (len(hands.taken), len({one.job.id for one in hands.taken}), hands.kept) == (3, 3, 0)
    assert len(await bench.claim(100)) == 17


async def test_a_caller_that_is_cancelled_takes_no_claimed_job_along(bench: StoreBench) -> None:
    store, hands = store_of(bench), Hands()
    with store.stand_by(hands):
        asking = asyncio.create_task(store.admit(a_new_job(bench.clock)))
        await hands.reserved.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(hands.given.wait(), PATIENCE_SECONDS)

    assert (len(hands.taken), hands.kept) == (1, 0)


async def test_a_store_that_fails_gives_the_slot_back(bench: StoreBench) -> None:
    store, hands = store_of(bench), Hands()
    await store.close()
    with store.stand_by(hands), pytest.raises(StoreUnavailable):
        await store.admit(a_new_job(bench.clock))

    assert (hands.taken, hands.kept) == ([], 0)


async def test_of_several_that_stand_by_the_one_of_its_lane_is_handed_the_job(bench: StoreBench) -> None:
    store, here, there = store_of(bench), Hands(), Hands(worker_id="w2", lanes=("gpu",))
    with store.stand_by(here), store.stand_by(there):
        mine = (await store.admit(a_new_job(bench.clock))).job
        theirs = (await store.admit(a_new_job(bench.clock, lane="gpu"))).job
        await asyncio.wait_for(there.given.wait(), PATIENCE_SECONDS)

    assert [one.job.id for one in here.taken] == [mine.id]
    assert [one.job.id for one in there.taken] == [theirs.id]
