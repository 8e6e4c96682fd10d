"""Accounts' limits where several processes admit and settle at once, and what they read to know them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.postgres.admission import admit_all
from tempa.core.accounts import AccountFull
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    LANE,
    LEASE_SECONDS,
    OTHER_ACCOUNT,
    a_key,
    a_new_job,
)
from tests.integration.postgres.gauge import Gauge, store_on
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tempa.adapters.stores.postgres.store import PostgresStore
    from tests.integration.postgres.sessions import Session

CLOCK = SystemClock()
HISTORY = 20_000
LOCK = "pg_advisory_xact_lock(1952804977, hashtext($1))"
LOCK_IF_FREE = "pg_try_advisory_xact_lock(1952804977, hashtext($1))"


async def full(store: PostgresStore, queued_max: int, account: str = ACCOUNT) -> bool:
    """Whether the account was, when one more job was asked for."""
    try:
        await store.admit(a_new_job(CLOCK, account=account, queued_max=queued_max))
    except AccountFull:
        return True
    return False


async def test_rivals_together_admit_as_many_as_there_may_be(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    answers = await asyncio.gather(*(full(store, 9) for _ in range(30) for store in (here, there)))

    assert answers.count(False) == 9
    assert await session.value("select count(*) from job") == 9


async def test_who_admits_waits_for_an_admission_that_is_not_finished_and_counts_it(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    await here.admit(a_new_job(CLOCK))  # the queue is open
    async with unfinished(there, admit_all([a_new_job(CLOCK, queued_max=2)], None)):
        late = asyncio.ensure_future(full(here, 2))
        await session.until_blocked(1)
        # Others are not held up by it: another account's, and this one's that has no limit.
        assert not await asyncio.wait_for(full(there, 5, OTHER_ACCOUNT), PATIENCE_SECONDS)

    assert await asyncio.wait_for(late, PATIENCE_SECONDS)


async def test_accounts_are_locked_in_one_order_whatever_that_of_the_batch(
    here: PostgresStore, session: Session
) -> None:
    """Else two processes that admit for the same accounts could each hold what the other waits for."""
    names = [f"account-{number:02}" for number in range(40)]
    await asyncio.gather(*(full(here, 9, name) for name in names))  # the queues are open
    await session.run("begin")
    await session.value(f"select {LOCK}", names[0])

    batch = asyncio.gather(*(full(here, 9, name) for name in names[::-1]))
    await session.until_blocked(1)
    taken = [name for name in names[1:] if not await session.value(f"select {LOCK_IF_FREE}", name)]
    await session.run("commit")

    assert taken == []  # whoever waits for the first holds none of the others
    assert not any(await asyncio.wait_for(batch, PATIENCE_SECONDS))


async def test_settlements_of_several_processes_are_all_summed(
    here: PostgresStore, there: PostgresStore
) -> None:
    await asyncio.gather(*(here.admit(a_new_job(CLOCK)) for _ in range(40)))
    first, second = [await store.claim("w", [LANE], 20, LEASE_SECONDS) for store in (here, there)]
    await asyncio.gather(
        *(here.settle(one.lease, COMPLETED) for one in first),
        *(there.settle(one.lease, COMPLETED) for one in second),
    )

    assert await here.compute_seconds_today(ACCOUNT) == pytest.approx(40 * 0.012)


# Long finished, or waiting in somebody else's queue: neither is this account's business any more.
OTHERS = f"""
set session_replication_role = replica;
insert into job (id, account, status, engine, lane, priority, created_at, started_at, run_at, retained_until,
                 sequence, tags, request, completed_at, result, epoch)
select 'cad_' || n, '{ACCOUNT}', 'completed', 'opencascade-brep', '{LANE}', 5, now_ms() - n, now_ms() - n, n,
       {2**42}, 2, '{{}}', '{{}}', now_ms() - n, '{{}}', 1
from generate_series(1, {HISTORY}) as n;
insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until, tags,
                 request)
select 'cad_q' || n, '{OTHER_ACCOUNT}', 'queued', 'opencascade-brep', '{LANE}', 5, n, n, {2**42}, '{{}}',
       '{{}}'
from generate_series(1, {HISTORY}) as n;
insert into queue values ('{LANE}', '{ACCOUNT}', 5), ('{LANE}', '{OTHER_ACCOUNT}', 5);
insert into account_day (day, account, compute_ms)
select n % 100, 'account-' || n % 50, 10 from generate_series(1, {HISTORY}) as n;
"""  # noqa: S608 - text of this file
FORGET = """
set allow_system_table_mods = on;
delete from pg_statistic;
update pg_class set relpages = 0, reltuples = -1 where relnamespace = 'public'::regnamespace;
"""
STATISTICS = {"right": "analyze", "none": FORGET}
# The account's own jobs and what the indexes take to get there; the tables have 500 pages and more.
PAGES_MAX = {"open_jobs": 20, "past_jobs": 70, "compute_of_day": 8, "queue_position": 12, "account": 6}


@pytest.fixture(params=sorted(STATISTICS))
async def gauge(request: pytest.FixtureRequest, database: str, session: Session) -> AsyncIterator[Gauge]:
    await session.run("alter table job set (autovacuum_enabled = off)")
    await session.run(OTHERS)
    await session.run("vacuum")
    await session.run(STATISTICS[request.param])
    gauge = await Gauge.on(database)
    yield gauge
    await gauge.close()


async def test_what_limits_and_estimates_read_does_not_grow_with_what_is_not_theirs(gauge: Gauge) -> None:
    store = store_on(gauge)
    jobs = [(await store.admit(a_new_job(CLOCK, queued_max=50, key=a_key(f"k{n}")))).job for n in range(10)]
    for _ in range(8):  # the server keeps a plan for all parameters from the sixth run on
        await store.admit(a_new_job(CLOCK, queued_max=50))
        assert len(await store.past_jobs("opencascade-brep", 86_400.0, 50)) == 50
        await store.compute_seconds_today(ACCOUNT)
        assert await store.queue_position(jobs[-1]) == 9
        await store.account(ACCOUNT)

    most = gauge.most()
    assert PAGES_MAX.keys() <= most.keys()
    assert {
        name: (most[name], gauge.scans[name][-1]) for name in PAGES_MAX if most[name] > PAGES_MAX[name]
    } == {}
