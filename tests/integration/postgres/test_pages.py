"""What the hot statements read does not grow with what is finished, whatever the planner believes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tempa.adapters.stores.postgres.queues import FROM_THE_FRONT_SECONDS, LATE_SECONDS
from tempa.adapters.stores.sql import job_row, result_text
from tempa.core.clock import SystemClock
from tempa.jobs.model import Beat, JobFilter, Stage, Tenant
from tempa.testing.contracts.bench import ROOMY, planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DELIVERED,
    LANE,
    LEASE_SECONDS,
    OTHER_ACCOUNT,
    RESULT,
    a_key,
    a_new_job,
    an_outcome,
    pending,
)
from tempa.webhooks.room import Room
from tests.integration.postgres.gauge import Gauge, store_on
from tests.services import fresh_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from tempa.adapters.stores.postgres.store import PostgresStore
    from tempa.testing.postgres import PostgresCluster

CLOCK = SystemClock()
FINISHED = 50_000
LIVES = 8  # the server keeps a plan for all parameters from the sixth run on
URL, OTHER_URL = "https://hooks.example/tempa", "https://other.example/tempa"

REQUEST = job_row(a_new_job(CLOCK))["request"]
RESULT_TEXT = result_text(RESULT)

# Jobs of one account, lane and priority, with events, deliveries and keys: all queued, or all long finished.
JOBS = f"""
set session_replication_role = replica;  -- no foreign keys are checked: seconds less
insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until, sequence,
                 work_key, tags, request)
select 'cad_' || n, '{ACCOUNT}', 'queued', 'e', '{LANE}', 5, n, n, {2**42}, 2,
       'w' || n % 100, '{{}}', $r${REQUEST}$r$
from generate_series(1, {FINISHED}) as n;
insert into queue values ('{LANE}', '{ACCOUNT}', 5);
insert into idempotency select '{ACCOUNT}', '/v1', 0, 'k' || number, 'f', id, 1 from job;
insert into endpoint (id, account, url, host, origin, created_at, changed_at, line_at)
values ('ep_1', '{ACCOUNT}', '{URL}', 'hooks.example', 'job', 1, 1, 1);
insert into event (id, account, job_id, sequence, type, at, body)
select 'evt_' || number, account, id, 2, 'job.completed', 1, '{{}}' from job;
insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at,
                      message)
select 'dlv_' || number, account, number, 1, job_id, 't', 'pending', 1, 1,
       '{{"at":1,"data":{{}},"links":{{}}}}'
from event;
"""  # noqa: S608 - text of this file
FINISH = f"""
set session_replication_role = replica;
update job set status = 'completed', completed_at = 9, result = $r${RESULT_TEXT}$r$, epoch = 1;
insert into attempt (job_id, epoch, worker, started_at, ended_at, outcome)
select id, 1, 'w', 1, 9, 'completed' from job;
update event set position = nextval('feed_position');
update delivery set status = 'delivered', finished_at = 9, attempts = 1;
insert into delivery_attempt (delivery_number, attempt, started_at, outcome)
select number, 1, 1, 'delivered' from delivery;
"""  # noqa: S608 - text of this file
FORGET = """
set allow_system_table_mods = on;
delete from pg_statistic;
update pg_class set relpages = 0, reltuples = -1 where relnamespace = 'public'::regnamespace;
"""
TABLES = ("job", "attempt", "idempotency", "event", "endpoint", "delivery", "delivery_attempt")
STATISTICS_STAY = "".join(f"alter table {table} set (autovacuum_enabled = off);\n" for table in TABLES)


def build(cluster: PostgresCluster, template: str, *scripts: str) -> str:
    """A copy of `template` on which `scripts` have run; its name."""
    name = fresh_name()
    cluster.execute(f"create database {name} template {template} strategy file_copy")
    for script in scripts:
        cluster.execute(script, name)
    return name


def drop(cluster: PostgresCluster, *names: str) -> None:
    """They lie in memory, with a tenth of a gigabyte each."""
    for name in names:
        cluster.execute(f"drop database {name}")


@pytest.fixture(scope="module")
def long_lives(cluster: PostgresCluster, template: str) -> Iterator[dict[str, str]]:
    """Databases with much that is finished, by what the planner knows of it; and one where all is queued."""
    queued = build(cluster, template, STATISTICS_STAY, JOBS, "analyze")
    finished = build(cluster, queued, FINISH, "vacuum")
    lives = {
        "queued": queued,
        "misleading": finished,
        "right": build(cluster, finished, "analyze"),
        "none": build(cluster, finished, FORGET),
    }
    yield lives
    drop(cluster, *lives.values())


@pytest.fixture(params=["none", "right", "misleading"])
def url(
    request: pytest.FixtureRequest, cluster: PostgresCluster, long_lives: dict[str, str]
) -> Iterator[str]:
    name = build(cluster, long_lives[request.param])
    yield cluster.url(name)
    drop(cluster, name)


@pytest.fixture
async def gauge(url: str) -> AsyncIterator[Gauge]:
    gauge = await Gauge.on(url)
    yield gauge
    await gauge.close()


async def live(store: PostgresStore, number: int) -> None:
    """All that happens to a job and its webhooks."""
    key = a_key(f"live-{number}")
    new = a_new_job(CLOCK, key=key, work_key="w1")
    await store.admit(new)
    await store.admit(a_new_job(CLOCK, key=key))
    (claimed,) = await store.claim("w1", [LANE], 1, LEASE_SECONDS)
    beat = Beat(lease=claimed.lease, stages=(Stage(name="s", at=CLOCK.now()),), fraction=0.5)
    assert (await store.beat([beat], LEASE_SECONDS))[0].held
    await store.finished_twin(claimed.job)
    assert await store.settle(claimed.lease, COMPLETED)
    await announce(store)
    await look(store, new.id)


async def take_among_two(store: PostgresStore) -> None:
    """Another account comes: who waits is now asked first, and then what of each is due."""
    await store.admit(a_new_job(CLOCK, account=OTHER_ACCOUNT))
    for _ in range(LIVES):
        await store.admit(a_new_job(CLOCK))
        assert await store.claim("w1", [LANE], 2, LEASE_SECONDS)


async def announce(store: PostgresStore) -> None:
    await store.fan_out([planned(event, URL) for event in await store.unplanned(100)])
    for taken in (await store.claim_deliveries(Room(ROOMY), 4, LEASE_SECONDS)).taken:
        assert await store.settle_delivery(taken, an_outcome("delivered", 200), DELIVERED)


async def look(store: PostgresStore, job_id: str) -> None:
    """What clients and the janitor ask."""
    await store.job(ACCOUNT, job_id)
    await store.job_events(job_id, 0, 100)
    await store.feed(ACCOUNT, FINISHED, 10)
    await store.jobs(ACCOUNT, JobFilter(), 10, None)
    await store.next_delayed([LANE])
    await store.expired(10)
    await store.overdue(10)
    await store.lapsed(10)
    await store.free_expired_deliveries()
    await store.next_tenant(None)
    await store.bound_jobs(Tenant(ACCOUNT, "gpu_1"), 10)


# Tables of 50,000 rows have 500 to 3,000 pages, their indexes 140 to 400. A write reads a page or two for
# each index it adds to.
PAGES_MAX = {
    "admit": 90,
    "key_holder": 12,
    "waiting_accounts": 24,  # a probe for each of two accounts
    "due_jobs": 24,  # with the account, and how many queues there are
    "start_jobs": 70,
    "beat": 70,
    "jobs_for_update": 10,
    "end_attempts": 80,
    "insert_event": 40,
    "finished_twin": 10,
    "unplanned": 12,
    "unplanned_number": 8,
    "place_event": 40,
    "endpoint_number": 8,
    "insert_delivery": 70,
    "due_deliveries": 300,
    "lease_deliveries": 150,  # three or four of them
    "end_delivery_attempts": 80,
    "close_delivery_attempts": 16,
    "job_of_account": 8,
    "job_events": 12,
    "feed": 12,
    "list_jobs": 50,
    "expired": 8,
    "overdue": 8,
    "lapsed": 8,
    "next_tenant": 8,
    "bound_jobs": 8,
    "free_deliveries": 12,
    "wait_for_delayed": 8,
}

# These begin at the front of an index that a snapshot keeps full of dead entries. The rescuer's, once a
# second: measured, and left so.
FROM_THE_FRONT = {"expired", "overdue"}


def too_many(gauge: Gauge, besides: Iterable[str] = ()) -> dict[str, tuple[int, str]]:
    """What read more than it may: how much, and by which indexes."""
    names = PAGES_MAX.keys() - set(besides)
    assert names <= gauge.pages.keys(), "a statement was not run at all"
    most = gauge.most()
    return {name: (most[name], gauge.scans[name][-1]) for name in names if most[name] > PAGES_MAX[name]}


async def test_what_is_finished_makes_nothing_dearer(gauge: Gauge) -> None:
    """50,000 jobs of one account and lane; the planner knows nothing, all, or takes them for queued."""
    store = store_on(gauge)
    for number in range(LIVES):
        await live(store, number)
    await take_among_two(store)

    assert not too_many(gauge)


@pytest.fixture
async def forgotten_snapshot(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    await connection.execute("begin isolation level repeatable read; select count(*) from account")
    yield
    await connection.close()


@pytest.mark.usefixtures("forgotten_snapshot")
async def test_an_idle_snapshot_makes_no_claim_and_no_fenced_write_dearer(gauge: Gauge) -> None:
    """A forgotten REPEATABLE READ transaction keeps what 2,000 jobs leave behind in the indexes."""
    store = store_on(gauge)
    seconds = [0.0]  # one look from the front at the start, and then all marks are where they ought to be
    store._queues._monotonic = store._events._monotonic = lambda: seconds[0]
    await drain(store, 2000)
    seconds[0] = LATE_SECONDS
    gauge.forget()
    for number in range(LIVES):
        seconds[0] += (FROM_THE_FRONT_SECONDS - LATE_SECONDS) / (LIVES + 1)
        await live(store, number)
    await take_among_two(store)

    assert not too_many(gauge, besides=FROM_THE_FRONT)


async def test_a_flood_makes_no_claim_dearer(cluster: PostgresCluster, long_lives: dict[str, str]) -> None:
    """50,000 jobs of one account wait, and as many deliveries to one endpoint; and one of somebody else's."""
    name = build(cluster, long_lives["queued"])
    gauge = await Gauge.on(cluster.url(name))
    store = store_on(gauge)
    for _ in range(LIVES):
        late = (await store.admit(a_new_job(CLOCK, account=OTHER_ACCOUNT))).job
        taken = await store.claim("w1", [LANE], 2, LEASE_SECONDS)
        assert late.id in [claimed.job.id for claimed in taken]
        await store.fan_out([planned(event, OTHER_URL) for event in await store.unplanned(100)])
        deliveries = (await store.claim_deliveries(Room(ROOMY), 8, LEASE_SECONDS)).taken
        assert OTHER_URL in {claimed.url for claimed in deliveries}
        for claimed in deliveries:
            assert await store.settle_delivery(claimed, an_outcome("delivered", 200), DELIVERED)
    await gauge.close()
    drop(cluster, name)

    most = gauge.most()
    hot = ("waiting_accounts", "due_jobs", "start_jobs", "due_deliveries", "end_delivery_attempts")
    assert not {name: most[name] for name in hot if most[name] > PAGES_MAX[name]}


async def drain(store: PostgresStore, count: int) -> None:
    """So many jobs come, run and end, many at a time; their events are placed."""
    await asyncio.gather(*(store.admit(a_new_job(CLOCK)) for _ in range(count)))
    while taken := await store.claim("w1", [LANE], 100, LEASE_SECONDS):
        await store.beat([Beat(lease=claimed.lease) for claimed in taken], LEASE_SECONDS)
        await asyncio.gather(*(store.settle(claimed.lease, COMPLETED) for claimed in taken))
    while events := await store.unplanned(500):
        await store.fan_out([planned(event) for event in events])


SLICE = 200
READ_MAX = 60  # pages, of what looks for one thing
SLICE_READ_MAX = 5 * SLICE  # of what lists a slice: each row is somewhere else
SLICE_HEALED_MAX = 8 * SLICE  # and whether a later event of its job was delivered is looked up for each
SLICE_WRITTEN_MAX = 60 * SLICE  # of what writes a slice, each row with its indexes


async def test_an_outage_reads_no_more_than_its_slice(
    cluster: PostgresCluster, long_lives: dict[str, str]
) -> None:
    """50,000 wait for an endpoint that goes down, die of it, and are sent once more; each in slices."""
    name = build(cluster, long_lives["queued"])
    gauge = await Gauge.on(cluster.url(name))
    store = store_on(gauge)
    for claimed in (await store.claim_deliveries(Room(ROOMY), 3, LEASE_SECONDS)).taken:
        assert await store.settle_delivery(claimed, an_outcome(), pending())
    cluster.execute("update endpoint set parked_at = 1", name)
    for _ in range(LIVES):
        assert await store.expire_parked(3600.0, SLICE) == SLICE
    cluster.execute("update endpoint set held_until = 0, line_at = 1", name)
    (probe,) = (await store.claim_deliveries(Room(ROOMY), 3, LEASE_SECONDS)).taken
    assert await store.settle_delivery(probe, an_outcome("delivered", 200), DELIVERED)
    for _ in range(LIVES):
        assert await store.heal(SLICE) == SLICE
    await gauge.close()
    drop(cluster, name)

    most = gauge.most()
    looks = ("long_parked", "healing_endpoints", "endpoints_for_update", "note_health")
    assert not {query: most[query] for query in looks if most[query] > READ_MAX}
    assert most["letters_to_heal"] <= SLICE_HEALED_MAX
    written = ("expire_deliveries", "heal_letters")
    assert not {query: most[query] for query in written if most[query] > SLICE_WRITTEN_MAX}


async def test_retention_of_payloads_reads_no_more_than_its_slice(gauge: Gauge) -> None:
    store = store_on(gauge)
    for _ in range(LIVES):
        assert await store.prune_payloads(CLOCK.now(), SLICE) == SLICE
        assert await store.prune_notices(CLOCK.now(), SLICE) == 0

    most = gauge.most()
    assert most["spent_payloads"] <= SLICE_READ_MAX
    assert most["prune_notices"] <= READ_MAX
    written = ("forget_messages", "forget_excerpts")
    assert not {query: most[query] for query in written if most[query] > SLICE_WRITTEN_MAX}
