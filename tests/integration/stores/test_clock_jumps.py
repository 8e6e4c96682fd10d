"""The wall clock is set back: what waits still comes when it was promised, and nothing else changes."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.sqlite.access import SQL
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.work import DELIVERIES, lane_topic
from tempa.jobs.model import JobFilter
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import ROOMY, StoreBench, sequences
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, settle
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DELIVERED,
    EXHAUSTED,
    LANE,
    LEASE_SECONDS,
    pending,
    retried,
)
from tempa.webhooks.ports import Answer
from tempa.webhooks.room import Room
from tempa.wiring.clock_watch import ClockWatch, catch_up
from tempa.wiring.embedded import open_embedded
from tempa.wiring.settings import load_settings
from tests.integration.deliveries.conftest import Post
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeSender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TWO_HOURS_MS = 7_200_000
SOON_SECONDS = 60.0


def store_of(bench: StoreBench) -> SqliteStore:
    assert isinstance(bench.store, SqliteStore)
    return bench.store


async def jump(bench: StoreBench) -> int:
    """Two hours back, and due times with it; how many there were."""
    bench.clock.jump(timedelta(milliseconds=-TWO_HOURS_MS))
    return await store_of(bench).set_back(TWO_HOURS_MS)


async def next_delivery(bench: StoreBench) -> tuple[list[str], float | None]:
    """What a deliverer would take now, and how long it would sleep then."""
    claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
    return [claimed.id for claimed in claim.taken], claim.next_seconds


@asynccontextmanager
async def watched(bench: StoreBench) -> AsyncIterator[None]:
    stop = asyncio.Event()
    role = asyncio.create_task(ClockWatch(store=store_of(bench), clock=bench.clock).run(stop))
    try:
        yield
    finally:
        stop.set()
        await role


async def test_a_retry_is_sent_a_second_later_and_not_two_hours(bench: StoreBench) -> None:
    await bench.deliveries_to(URL)
    (claimed,) = await bench.take()
    assert await settle(bench, claimed, pending(delay_seconds=1.0))
    sender = FakeSender(Answer(200, None))
    post = Post(store_of(bench), bench.clock, bench.wake)  # type: ignore[arg-type]
    async with watched(bench), post.delivering(sender):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await bench.clock.until_asleep(2)
        bench.clock.jump(timedelta(hours=-2))
        bench.clock.advance(1.0)
        await sender.under_way(1)

    assert bench.clock.monotonic() == 1.0


async def test_a_retry_keeps_its_delay(bench: StoreBench) -> None:
    (delivery_id,) = await bench.deliveries_to(URL)
    (claimed,) = await bench.take()
    assert await settle(bench, claimed, pending(delay_seconds=SOON_SECONDS))
    await bench.claim()  # the job itself is not in the way

    assert await jump(bench) == 1
    assert await next_delivery(bench) == ([], SOON_SECONDS)
    bench.clock.advance(SOON_SECONDS)
    assert await next_delivery(bench) == ([delivery_id], None)


async def test_a_hold_keeps_its_length(bench: StoreBench) -> None:
    made = await bench.deliveries_to(URL, 2)
    (claimed,) = await bench.take(1)
    assert await settle(bench, claimed, pending(delay_seconds=31.0, hold_seconds=30.0))
    bench.clock.advance(10.0)

    await jump(bench)
    assert await next_delivery(bench) == ([], 20.0)
    made += await bench.deliveries_to(URL)
    assert await next_delivery(bench) == ([], 20.0)
    bench.clock.advance(20.0)
    taken, seconds = await next_delivery(bench)
    assert (sorted(taken), seconds) == (sorted(made[1:]), 1.0)


async def test_a_delayed_job_keeps_its_delay(bench: StoreBench) -> None:
    claimed = await bench.start()
    assert await bench.store.settle(claimed.lease, retried(SOON_SECONDS))

    assert await jump(bench) == 1
    bench.clock.advance(SOON_SECONDS - 0.001)
    assert await bench.claim() == []
    bench.clock.advance(0.001)
    assert [one.job.id for one in await bench.claim()] == [claimed.job.id]


async def test_what_was_due_is_due_at_once_and_in_its_order(bench: StoreBench) -> None:
    """One job before the two hours, two within them."""
    waiting = [await bench.admit()]
    for seconds in (3600.0, 3601.0):
        bench.clock.advance(seconds)
        waiting.append(await bench.admit())

    assert await jump(bench) == 2
    assert [one.job.id for one in await bench.claim(3)] == [job.id for job in waiting]


async def test_deliveries_that_were_due_are_due_at_once_and_in_their_order(bench: StoreBench) -> None:
    made = await bench.deliveries_to(URL)
    for seconds in (3600.0, 3601.0):
        bench.clock.advance(seconds)
        made += await bench.deliveries_to(URL)
    assert len(await bench.claim(10)) == 3

    assert await jump(bench) == 2
    assert await next_delivery(bench) == (made, None)


async def test_an_attempt_that_is_cut_short_after_a_jump_is_made_again_at_once(bench: StoreBench) -> None:
    made = await bench.deliveries_to(URL)
    assert len(await bench.take()) == 1
    await jump(bench)
    bench.let_lapse()
    assert await store_of(bench).free_expired_deliveries() == 1

    assert await next_delivery(bench) == (made, None)


async def test_what_is_due_or_over_or_promised_by_the_clock_stays_as_it_is(
    bench: StoreBench, path: Path
) -> None:
    await old_lives(bench)
    bench.clock.advance(3600.0 + TWO_HOURS_MS / 1000)
    before = rows(path)
    async with bench.expect_silence(DELIVERIES, lane_topic(LANE), lane_topic("gpu")):
        assert await jump(bench) == 0

    assert rows(path) == before


async def test_only_due_times_move(bench: StoreBench, path: Path) -> None:
    await old_lives(bench)
    before = rows(path)

    await jump(bench)

    due = {"job": {"run_at"}, "delivery": {"next_at"}, "endpoint": {"held_until", "line_at"}}
    changed: dict[str, set[str]] = {}
    for (table, old), (_, new) in zip(before, rows(path), strict=True):
        changed.setdefault(table, set()).update(name for name in old if old[name] != new[name])
        if old.get("finished_at") or old.get("completed_at"):
            assert old == new
    assert {table: names for table, names in changed.items() if names} == due


async def test_whoever_waits_is_woken(bench: StoreBench) -> None:
    await bench.admit(lane="gpu")
    await bench.deliveries_to(URL)
    bench.clock.advance(1.0)

    async with bench.expect_ring(DELIVERIES, lane_topic(LANE), lane_topic("gpu")):
        assert await jump(bench) == 3


async def test_lists_and_logs_keep_the_order_of_writing(bench: StoreBench) -> None:
    claimed = await bench.start()
    await bench.plan()
    await jump(bench)
    assert await bench.store.settle(claimed.lease, COMPLETED)
    later = await bench.admit()
    await bench.plan()

    listed = await bench.store.jobs(ACCOUNT, JobFilter(), 10, None)
    assert [job.id for job in listed] == [later.id, claimed.job.id]
    assert sequences(await bench.log(claimed.job)) == [1, 2, 3]
    feed = await bench.store.feed(ACCOUNT, 0, 10)
    assert [event.position for event in feed] == [1, 2, 3, 4]
    assert feed[-1].job_id == later.id
    assert feed[0].at > feed[-1].at  # told as the clock said


async def test_at_a_start_after_a_jump_a_retry_keeps_no_longer_than_its_delay(
    bench: StoreBench, path: Path
) -> None:
    made = await bench.deliveries_to(URL)
    (claimed,) = await bench.take()
    assert await settle(bench, claimed, pending(delay_seconds=1.0))
    (job,) = await bench.claim()
    assert await bench.store.settle(job.lease, retried(1.0))

    async with started_again(path, bench, timedelta(hours=-2)) as again:
        await catch_up(store_of(again))
        again.clock.advance(1.0)

        assert await next_delivery(again) == (made, None)
        assert [one.job.id for one in await again.claim()] == [job.job.id]


async def test_at_a_start_the_last_attempt_tells_of_a_jump_as_well(bench: StoreBench, path: Path) -> None:
    """The receiver has been down since yesterday: that was told then, and no job has come since."""
    made = await bench.deliveries_to(URL)
    for seconds in (0.0, 86_400.0):
        bench.clock.advance(seconds)
        (claimed,) = await bench.take()
        assert await settle(bench, claimed, pending(delay_seconds=1.0))

    async with started_again(path, bench, timedelta(hours=-2)) as again:
        assert await store_of(again).behind_milliseconds() == TWO_HOURS_MS
        await catch_up(store_of(again))
        again.clock.advance(1.0)

        assert await next_delivery(again) == (made, None)


@pytest.mark.parametrize("hours", [0, 2])
async def test_at_a_start_with_the_clock_in_order_nothing_moves(
    bench: StoreBench, path: Path, hours: int
) -> None:
    await old_lives(bench)
    before = rows(path)

    async with started_again(path, bench, timedelta(hours=hours)) as again:
        assert await store_of(again).behind_milliseconds() == 0
        await catch_up(store_of(again))

    assert rows(path) == before


async def test_a_fresh_store_is_behind_nothing(bench: StoreBench) -> None:
    assert await store_of(bench).behind_milliseconds() == 0


async def test_the_embedded_server_catches_up_and_keeps_watch(tmp_path: Path) -> None:
    """Written two hours from now; then the server starts."""
    clock = ManualClock(SystemClock().now() + timedelta(hours=2))
    wake = InProcessWake(clock)
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=wake)
    try:
        made = await StoreBench(store=store, clock=clock, wake=wake).deliveries_to(URL)
    finally:
        await store.close()

    settings = load_settings(environment={})
    async with open_embedded(settings, tmp_path) as deployment:
        claim = await deployment.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)

    assert [claimed.id for claimed in claim.taken] == made
    assert [role.name for role in deployment.upkeep] == ["clock-watch"]


def test_what_is_over_is_not_read(database: sqlite3.Connection) -> None:
    """A jump holds up the writer; of jobs and deliveries it goes by the indexes of what waits."""
    jump = {"now": 1, "by": 1}

    def plan(name: str) -> str:
        steps = database.execute(f"explain query plan {getattr(SQL, name).sql}", jump)
        return "; ".join(step["detail"] for step in steps)

    assert "job USING INDEX job_ready" in plan("set_back_jobs")
    assert "delivery USING INDEX delivery_unfinished" in plan("set_back_deliveries")


async def old_lives(bench: StoreBench) -> None:
    """Jobs and deliveries in many states, with a deadline, a delay and a hold of an hour among them."""
    await bench.deliveries_to(URL, 4)
    await bench.deliveries_to(OTHER_URL)
    first, second, third, *_ = await bench.take(10)
    await settle(bench, first, DELIVERED, 200)
    await settle(bench, second, EXHAUSTED)
    await settle(bench, third, pending(delay_seconds=3600.0, hold_seconds=3000.0))
    completed, delayed, _runs, *_ = await bench.claim(3)
    assert await bench.store.settle(completed.lease, COMPLETED)
    assert await bench.store.settle(delayed.lease, retried(3600.0))
    await bench.admit(lane="gpu", deadline_seconds=9000.0)


@asynccontextmanager
async def started_again(path: Path, bench: StoreBench, later: timedelta) -> AsyncIterator[StoreBench]:
    """The same store in a new process of a machine that was booted, so much later by the wall clock."""
    await store_of(bench).close()
    clock = ManualClock(bench.clock.now() + later)
    wake = InProcessWake(clock)
    store = await SqliteStore.open(path, clock=clock, wake=wake)
    try:
        yield StoreBench(store=store, clock=clock, wake=wake)
    finally:
        await store.close()


def rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """All that is on record."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [
            (table, dict(row))
            for table in ("job", "attempt", "event", "endpoint", "delivery", "delivery_attempt")
            for row in connection.execute(f"select * from {table}")  # noqa: S608 - names from above
        ]
