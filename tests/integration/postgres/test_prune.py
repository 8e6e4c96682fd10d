"""Pruning beside everything else: what a slice reads is bounded, and nobody waits in a ring with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from tempa.adapters.stores.commands import deliveries
from tempa.adapters.stores.commands.retention import START, _prune
from tempa.jobs.model import JobFilter, Verdict
from tempa.jobs.ports import Pruned
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DAY_SECONDS,
    DELIVERED,
    a_key,
    a_new_job,
    an_outcome,
)
from tests.integration.postgres.gauge import Gauge, store_on
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished
from tests.integration.postgres.test_pages import FINISH, FORGET, JOBS, STATISTICS_STAY, build, drop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.adapters.stores.postgres.store import PostgresStore
    from tempa.testing.contracts.store import StoreBench
    from tempa.testing.postgres import PostgresCluster
    from tests.integration.postgres.sessions import Session

Pair = tuple["StoreBench", "StoreBench"]

SLICE = 25
SLICES = 8  # the server keeps a plan for all parameters from the sixth run on
URL = "https://hooks.example/tempa"

# Their files were removed long ago, so that all of them may go.
REMOVE = "set session_replication_role = replica; update job set removed = 1, retained_until = number"

# The tables have 500 to 3,000 pages, their indexes 140 to 400. A job reads its own few pages of each.
PAGES_A_JOB_MAX = {
    "spent_jobs": 12,
    "lock_keys_of": 8,
    "endpoints_of": 8,
    "bury": 8,
    "forget_deliveries": 8,
    "forget_events": 8,
    "forget_attempts": 8,
    "forget_keys": 8,
    "forget_jobs": 8,
    "prune_endpoint": 1,
    "orphans": 8,
}
ROWS_A_JOB_MAX = 100
READ_ROWS = """
select (select sum(seq_tup_read) from pg_stat_user_tables)
    + (select sum(idx_tup_read) from pg_stat_user_indexes)
"""


@pytest.fixture(scope="module")
def past(cluster: PostgresCluster, template: str) -> Iterator[dict[str, str]]:
    """Databases full of jobs past their time, by what the planner knows of it."""
    queued = build(cluster, template, STATISTICS_STAY, JOBS, "analyze")
    spent = build(cluster, queued, FINISH, REMOVE, "vacuum")
    made = {
        "misleading": spent,
        "right": build(cluster, spent, "analyze"),
        "none": build(cluster, spent, FORGET),
    }
    drop(cluster, queued)
    yield made
    drop(cluster, *made.values())


@pytest.mark.parametrize("pooled", [False, True], ids=["own session", "pooled"])
@pytest.mark.parametrize("known", ["none", "right", "misleading"])
async def test_a_slice_reads_what_its_jobs_have(
    cluster: PostgresCluster, past: dict[str, str], known: str, *, pooled: bool
) -> None:
    """Among 50,000 that are as old; the planner knows nothing, all, or takes them for queued."""
    database = build(cluster, past[known])  # of its own: a prune leaves dead rows behind
    gauge = await Gauge.on(cluster.url(database), pooled=pooled)
    store, after = store_on(gauge), None
    before = await read_rows(gauge)
    for _ in range(SLICES):
        pruned = await store.prune(0.0, after, SLICE)
        assert pruned.jobs == SLICE
        await store.orphans([f"cad_{number}" for number in range(SLICE)])
        after = pruned.further
    read = await read_rows(gauge) - before
    await gauge.close()
    drop(cluster, database)

    assert PAGES_A_JOB_MAX.keys() <= gauge.pages.keys(), "a statement was not run at all"
    most = gauge.most()
    dear = {
        name: gauge.scans[name][-1] for name, pages in PAGES_A_JOB_MAX.items() if most[name] > pages * SLICE
    }
    assert dear == {}
    assert read < ROWS_A_JOB_MAX * SLICE * SLICES


async def read_rows(gauge: Gauge) -> int:
    """Rows and index entries read so far, for the checks of foreign keys too, which no plan shows."""
    async with gauge.acquire() as connection:
        await connection.execute("select pg_stat_force_next_flush()")
        return int(await connection.fetchval(READ_ROWS))


@pytest.fixture
async def pruned_later(benches: Pair) -> list[str]:
    """Five jobs past their time, in every order of theirs those with the last keys first; their keys."""
    here, _ = benches
    keys = [f"k{number}" for number in range(5)]
    for key in reversed(keys):
        claimed = await here.start(key=a_key(key))
        assert await here.store.settle(claimed.lease, COMPLETED)
        assert await here.store.mark_removed(ACCOUNT, claimed.job.id)
    await here.plan()
    here.clock.advance(60 * DAY_SECONDS)
    return keys


@pytest.mark.usefixtures("no_second_try")
@pytest.mark.parametrize("first", ["prune", "admissions"])
async def test_keys_that_are_asked_for_again_while_their_jobs_are_pruned(
    benches: Pair, pruned_later: list[str], session: Session, first: str
) -> None:
    """Both want the same keys; a third holds the one in the middle until both wait."""
    await session.find_by_index()
    here, there = benches
    news = [a_new_job(here.clock, key=a_key(key)) for key in pruned_later]
    await session.run("begin")
    await session.value("select key from idempotency where key = $1 for update", pruned_later[2])
    commands = [here.store.prune(0.0, None, 10), asyncio.gather(*(there.store.admit(new) for new in news))]
    if first == "admissions":
        commands.reverse()

    answers = await session.in_line(*commands)

    pruned, admissions = answers if first == "prune" else answers[::-1]
    assert pruned == Pruned(5, None)
    assert [admission.verdict for admission in admissions] == [Verdict.ADMITTED] * 5
    held = [await here.store.admit(a_new_job(here.clock, key=a_key(key))) for key in pruned_later]
    assert [(one.verdict, one.job.id) for one in held] == [(Verdict.REPLAYED, new.id) for new in news]


async def test_two_janitors_prune_side_by_side(benches: Pair, pruned_later: list[str]) -> None:
    here, there = benches
    async with unfinished(cast("PostgresStore", here.store), _prune(0.0, START, 2)) as done:
        beside = await asyncio.wait_for(there.store.prune(0.0, None, 10), PATIENCE_SECONDS)

    assert (done.answer.jobs, beside.jobs) == (2, 3)
    assert await here.store.jobs(ACCOUNT, JobFilter(), 10, None) == []


@pytest.mark.parametrize("first", ["fan out", "prune"])
async def test_an_endpoint_that_gets_news_while_its_last_job_is_pruned_is_there_for_them(
    benches: Pair, session: Session, first: str
) -> None:
    here, there = benches
    claimed = await here.start()
    assert await here.store.settle(claimed.lease, COMPLETED)
    assert await here.store.mark_removed(ACCOUNT, claimed.job.id)
    for _ in range(await here.plan(URL)):
        (taken,) = await here.take()
        assert await here.store.settle_delivery(taken, an_outcome("delivered", 200), DELIVERED)
    here.clock.advance(60 * DAY_SECONDS)
    await here.admit()
    plans = [planned(event, URL) for event in await here.store.unplanned(10)]
    flows = [deliveries._fan_out(plans), _prune(0.0, START, 10)]
    commands = [there.store.prune(0.0, None, 10), there.store.fan_out(plans)]
    if first == "prune":
        flows, commands = flows[::-1], commands[::-1]

    async with unfinished(cast("PostgresStore", here.store), flows[0]):
        rival = asyncio.create_task(commands[0])
        await session.until_blocked(1)
    commands[1].close()

    assert await asyncio.wait_for(rival, PATIENCE_SECONDS) in (1, Pruned(1, None))
    assert [one.url for one in await there.take(10)] == [URL]
