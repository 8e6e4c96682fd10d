"""What happens when the server dies, when somebody holds a lock and does not let go, when a client stops."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tempa.adapters.stores.postgres import access
from tempa.adapters.stores.postgres.connections import BEGIN, Address, begin
from tempa.adapters.stores.postgres.schema import prepare
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.errors import StoreUnavailable
from tempa.jobs.model import Verdict
from tempa.testing.contracts.bench import ROOMY
from tempa.testing.contracts.samples import ACCOUNT, LANE, LEASE_SECONDS, a_key, a_new_job
from tempa.testing.postgres import FAST, PostgresCluster, running_cluster
from tempa.webhooks.room import Room
from tests.integration.postgres.sessions import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.integration.postgres.sessions import Session

CLOCK = SystemClock()

# What a commit returns for is then in the kernel's hands: it outlives the server's processes.
CRASH_SAFE = {**FAST, "synchronous_commit": "on"}


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[PostgresCluster]:
    """A server to be killed."""
    with running_cluster(CRASH_SAFE) as running:
        yield running


@pytest.fixture
async def store(own_cluster: PostgresCluster, request: pytest.FixtureRequest) -> AsyncIterator[PostgresStore]:
    name = f"tempa_{abs(hash(request.node.name))}"
    own_cluster.execute(f"create database {name}")
    await prepare(own_cluster.url(name))
    store = await PostgresStore.open(Address(own_cluster.url(name)), wake=InProcessWake())
    yield store
    await store.close()


async def test_what_was_acknowledged_outlives_the_server_and_the_store_goes_on(
    own_cluster: PostgresCluster, store: PostgresStore
) -> None:
    """It dies in the middle of admissions of sixteen callers; nobody hangs, nobody reopens anything."""
    acknowledged: dict[str, str] = {}
    enough = asyncio.Event()

    async def admit(writer: int) -> str:
        for number in itertools.count():
            key = f"w{writer}-{number}"
            try:
                admission = await store.admit(a_new_job(CLOCK, key=a_key(key)))
            except StoreUnavailable:
                return key
            acknowledged[key] = admission.job.id
            if len(acknowledged) >= 200:
                enough.set()
        raise AssertionError

    async with asyncio.timeout(60):
        writers = [asyncio.create_task(admit(writer)) for writer in range(16)]
        await enough.wait()
        await asyncio.to_thread(own_cluster.crash)
        refused = await asyncio.gather(*writers)
        with pytest.raises(StoreUnavailable):
            await store.counts()
        await asyncio.to_thread(own_cluster.start)
        again = [await store.admit(a_new_job(CLOCK, key=a_key(key))) for key in (*acknowledged, *refused)]

    kept = dict(zip((*acknowledged, *refused), again, strict=True))
    assert {key: kept[key].job.id for key in acknowledged} == acknowledged
    assert all(kept[key].verdict is Verdict.REPLAYED for key in acknowledged)
    assert sum((await store.counts()).values()) == len(kept)


async def test_every_command_says_at_once_that_the_server_is_away(
    own_cluster: PostgresCluster, store: PostgresStore
) -> None:
    claimed = (await store.admit(a_new_job(CLOCK))).job
    (running,) = await store.claim("w1", [LANE], 1, LEASE_SECONDS)
    await asyncio.to_thread(own_cluster.crash)
    commands: list[Any] = [
        store.admit(a_new_job(CLOCK)),
        store.claim("w1", [LANE], 1, LEASE_SECONDS),
        store.beat([], LEASE_SECONDS),
        store.cancel(ACCOUNT, claimed.id),
        store.job(ACCOUNT, claimed.id),
        store.unplanned(10),
        store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS),
        store.key_by_digest("x"),
    ]

    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(*commands, return_exceptions=True)
    await asyncio.to_thread(own_cluster.start)

    assert [type(answer) for answer in answers] == [StoreUnavailable] * len(commands)
    assert (await store.job(ACCOUNT, running.job.id)) == running.job


async def test_a_server_that_is_not_there_yet_is_found_when_it_comes(own_cluster: PostgresCluster) -> None:
    await asyncio.to_thread(own_cluster.crash)
    store = await PostgresStore.open(Address(own_cluster.url("postgres")), wake=InProcessWake())
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        await store.counts()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await prepare(own_cluster.url("postgres"))
    await asyncio.to_thread(own_cluster.start)

    await prepare(own_cluster.url("postgres"))

    assert await store.counts() == {}
    await store.close()


async def test_a_closed_store_is_unavailable(here: PostgresStore) -> None:
    await here.close()

    with pytest.raises(StoreUnavailable):
        await here.admit(a_new_job(CLOCK))
    with pytest.raises(StoreUnavailable):
        await here.counts()


async def test_closing_finishes_what_was_asked_for(here: PostgresStore, session: Session) -> None:
    """A batch is under way, behind a lock, and another one waits for it."""
    await here.admit(a_new_job(CLOCK))
    await session.run("begin; lock table idempotency in exclusive mode")
    first = asyncio.create_task(here.admit(a_new_job(CLOCK, key=a_key("k1"))))
    await session.until_blocked(1)
    second = asyncio.create_task(here.admit(a_new_job(CLOCK, key=a_key("k2"))))
    await asyncio.wait([second], timeout=0)
    closing = asyncio.create_task(here.close())
    await asyncio.wait([closing], timeout=0)
    await session.run("commit")

    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(first, second, closing)

    assert [answer.verdict for answer in answers[:2]] == [Verdict.ADMITTED] * 2


async def test_a_lock_that_somebody_keeps_makes_the_store_unavailable_and_nothing_is_written(
    here: PostgresStore, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "BEGIN", begin(lock_seconds=0.2))
    job = (await here.admit(a_new_job(CLOCK))).job
    await session.hold(job.id)
    started = time.monotonic()

    with pytest.raises(StoreUnavailable, match="lock timeout"):
        await here.cancel(ACCOUNT, job.id)

    assert 0.2 <= time.monotonic() - started < PATIENCE_SECONDS
    assert await here.job(ACCOUNT, job.id) == job  # who reads waits for nobody
    await session.run("rollback")
    assert await here.cancel(ACCOUNT, job.id)


async def test_a_lock_that_somebody_keeps_makes_admission_unavailable_and_nothing_is_written(
    here: PostgresStore, session: Session
) -> None:
    """A statement that is a transaction by itself has the bound of its session."""
    await here.admit(a_new_job(CLOCK))
    await session.run("begin; lock table idempotency in exclusive mode")

    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            await here.admit(a_new_job(CLOCK, key=a_key()))
    await session.run("rollback")

    assert sum((await here.counts()).values()) == 1


async def test_who_stops_in_the_middle_of_a_claim_holds_up_the_others_for_a_moment_only(
    here: PostgresStore, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's machine is suspended between two statements: its locks go with its transaction."""
    monkeypatch.setattr(access, "BEGIN", begin(lock_seconds=PATIENCE_SECONDS))
    job = (await here.admit(a_new_job(CLOCK))).job
    await session.run(begin(idle_seconds=0.3))
    await access.SQL.lock_claims(session.connection)

    (claimed,) = await here.claim("w2", [LANE], 1, LEASE_SECONDS)

    assert claimed.job.id == job.id
    # Which of them is chance: the driver may meet the server's farewell in the middle of its own words.
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)):
        await session.run("commit")


@pytest.mark.parametrize("pooled", [False, True], ids=["own sessions", "pooled"])
async def test_transactions_of_the_store_are_bounded_on_the_server(database: str, *, pooled: bool) -> None:
    """Milliseconds, as the server has them in a transaction of the store, whoever the session belongs to."""
    store = await PostgresStore.open(Address(database, pooled=pooled), wake=InProcessWake())
    async with store._transaction(BEGIN) as connection:
        bounds = [
            await connection.fetchval("select setting::int from pg_settings where name = $1", name)
            for name in ("lock_timeout", "idle_in_transaction_session_timeout")
        ]
    await store.close()

    assert bounds == [2000, 5000]


@pytest.mark.parametrize("error", [asyncpg.InternalClientError, asyncpg.InterfaceError])
async def test_a_connection_whose_driver_has_lost_its_place_is_replaced(
    here: PostgresStore, error: type[Exception]
) -> None:
    """As once after a worker had been stopped for longer than the server waits."""
    backends = []

    async def work(why: Exception | None) -> None:
        async with here._transaction(BEGIN) as connection:
            backends.append(await connection.fetchval("select pg_backend_pid()"))
            if why is not None:
                raise why

    with pytest.raises(StoreUnavailable, match="lost its place"):
        await work(error("lost its place"))
    await work(None)

    assert len(set(backends)) == 2


async def test_who_is_cancelled_while_he_waits_leaves_no_transaction_behind(
    here: PostgresStore, session: Session
) -> None:
    broken: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    job = (await here.admit(a_new_job(CLOCK))).job
    await session.hold(job.id)
    waiting = [asyncio.create_task(here.cancel(ACCOUNT, job.id)) for _ in range(10)]
    await session.until_blocked(5)  # all connections of the pool; the others wait for one
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
    await session.run("rollback")

    assert all(task.cancelled() for task in waiting)
    assert (await here.job(ACCOUNT, job.id)) == job
    assert await session.value("select count(*) from pg_stat_activity where state like 'idle in%'") == 0
    assert broken == []


async def test_a_request_that_the_server_refuses_fails_nobody_who_came_with_it(here: PostgresStore) -> None:
    """A priority that no column holds is stopped by the driver, a NUL in a lane by the server."""
    news = [
        a_new_job(CLOCK),
        a_new_job(CLOCK, priority=2**40),
        a_new_job(CLOCK, lane="c\0pu"),
        a_new_job(CLOCK),
    ]

    answers = await asyncio.gather(*(here.admit(new) for new in news), return_exceptions=True)

    assert [isinstance(answer, Exception) for answer in answers] == [False, True, True, False]
    assert not [answer for answer in answers if isinstance(answer, StoreUnavailable)]
    assert sum((await here.counts()).values()) == 2
