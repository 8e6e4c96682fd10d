"""The store's contract, over every implementation."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tempa.adapters.stores.commands import dead_letters, endpoints
from tempa.adapters.stores.commands.claims import _start_row
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Done
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import to_ms
from tempa.jobs.model import Released
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.delivery_steps import with_attempts
from tempa.testing.contracts.endpoints import register, sent_to
from tempa.testing.contracts.samples import ACCOUNT, EXHAUSTED, LEASE_SECONDS, an_outcome
from tempa.testing.contracts.store import (
    AccountStoreContract,
    JobStoreContract,
    KeyStoreContract,
    SettlementStoreContract,
    StoreBench,
    WebhookStoreContract,
)
from tempa.webhooks.model import DeadFilter, DeliveryStatus, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import Job

# Flushing to a real disk is tested in tests/integration/stores; here it would only cost half a minute.
MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh, private folder in it


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


GRANT = """
insert into account (id, created_at, weight, running_max) values ($1, 1, $2, $3)
on conflict (id) do update set weight = excluded.weight, running_max = excluded.running_max
"""


async def in_file(path: Path, account: str, weight: float, running_max: int | None) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # By name: a sequence for numbered parameters warns on Python 3.12.
        connection.execute(GRANT.replace("$", ":"), {"1": account, "2": weight, "3": running_max})


async def on_server(url: str, account: str, weight: float, running_max: int | None) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(GRANT, account, weight, running_max)
    finally:
        await connection.close()


@asynccontextmanager
async def on_sqlite(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    path = request.getfixturevalue("folder") / "tempa.db"
    store = await SqliteStore.open(path, clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake, grant=partial(in_file, path))
    await store.close()


@asynccontextmanager
async def on_postgres(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    url = request.getfixturevalue("database")
    store = await PostgresStore.open(Address(url), clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake, grant=partial(on_server, url))
    await store.close()


@pytest.fixture(params=[on_sqlite, on_postgres], ids=["sqlite", "postgres"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    async with request.param(request) as made:
        yield made


class TestJobStore(JobStoreContract):
    pass


class TestWebhookStore(WebhookStoreContract):
    pass


class TestSettlementStore(SettlementStoreContract):
    pass


class TestKeyStore(KeyStoreContract):
    pass


class TestAccountStore(AccountStoreContract):
    pass


async def nothing(bench: StoreBench, job: Job) -> None:
    pass


async def canceled(bench: StoreBench, job: Job) -> None:
    assert await bench.store.cancel(ACCOUNT, job.id)


async def taken(bench: StoreBench, job: Job) -> None:
    await bench.claim()


async def handed_back(bench: StoreBench, job: Job) -> None:
    (claimed,) = await bench.claim()
    assert await bench.store.settle(claimed.lease, Released())


@pytest.mark.parametrize("change", [nothing, canceled, taken, handed_back])
async def test_what_changed_since_the_look_is_not_started(
    bench: StoreBench, change: Callable[[StoreBench, Job], Awaitable[None]]
) -> None:
    """The claim's own write says which epoch and status it saw: its look may be older than a cancel."""
    seen = await bench.admit()
    await change(bench, seen)
    job, log = await bench.reread(seen), await bench.log(seen)
    store: Any = bench.store

    started = await store._write(start, seen)

    if change is nothing:
        assert started == [seen.id]
    else:
        assert started == []
        assert (await bench.reread(seen), await bench.log(seen)) == (job, log)


def start(seen: Job) -> Flow[Done[list[str]]]:
    """What a claim writes of a job that it saw so."""
    moment = yield MOMENT
    row = _start_row(replace(seen, epoch=seen.epoch + 1, sequence=seen.sequence + 1))
    lease = {"worker": "w2", "now": moment.now, "lease_until": moment.lease_until(LEASE_SECONDS)}
    rows = yield ASK.start_jobs([{**row, **lease}])
    return Done([row["id"] for row in rows])


async def test_a_long_line_is_canceled_in_slices_and_its_endpoint_is_paused_meanwhile(
    bench: StoreBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "CANCELED_PER_TRANSACTION", 2)
    endpoint = await register(bench)
    waiting = [await sent_to(bench, endpoint) for _ in range(5)]
    store: Any = bench.store

    assert await store._write(endpoints._remove, ACCOUNT, endpoint.id) is None

    half = await bench.store.endpoint(ACCOUNT, endpoint.id)
    assert half is not None
    assert (half.status, half.pending) == (EndpointStatus.PAUSED, 3)
    assert await bench.take() == []
    assert await bench.store.remove_endpoint(ACCOUNT, endpoint.id)
    assert await bench.store.endpoint(ACCOUNT, endpoint.id) is None
    for delivery_id, _ in waiting:
        assert (await with_attempts(bench, delivery_id))[0].status is DeliveryStatus.CANCELED


async def test_a_redrive_that_looked_before_its_endpoint_was_removed_drives_nothing(
    bench: StoreBench,
) -> None:
    """What began to wait there would wait for ever: nobody claims from a removed endpoint."""
    endpoint = await register(bench)
    await sent_to(bench, endpoint)
    (claimed,) = await bench.take()
    assert await bench.store.settle_delivery(claimed, an_outcome(), EXHAUSTED)
    store: Any = bench.store
    which = DeadFilter(endpoint_id=endpoint.id)
    (letter,) = await store._read(dead_letters._letters, ACCOUNT, which)
    assert not letter.spent
    assert await bench.store.remove_endpoint(ACCOUNT, endpoint.id)

    row = {"number": letter.number, "next_at": to_ms(bench.clock.now())}
    assert await store._write(dead_letters._redrive, [row], {letter.endpoint_number}) == 0

    assert (await with_attempts(bench, claimed.id))[0].status is DeliveryStatus.DEAD


async def test_what_waits_at_a_removed_endpoint_all_the_same_is_canceled(bench: StoreBench) -> None:
    gone, stays = await register(bench), await register(bench)
    stranded = [(await sent_to(bench, gone))[0] for _ in range(5)]
    spared, _ = await sent_to(bench, stays)
    store: Any = bench.store
    await store._write(removed_before_its_time, gone.id)

    assert [await bench.store.cancel_stranded(3) for _ in range(3)] == [3, 2, 0]

    statuses = {(await with_attempts(bench, one))[0].status for one in stranded}
    assert statuses == {DeliveryStatus.CANCELED}
    assert (await with_attempts(bench, spared))[0].status is DeliveryStatus.PENDING


def removed_before_its_time(endpoint_id: str) -> Flow[Done[None]]:
    """As no command does it: something still waits there."""
    row = yield ASK.endpoint_of_account(account=ACCOUNT, endpoint_id=endpoint_id)
    yield ASK.remove_endpoint(endpoint_number=row["number"], now=1)
    return Done(None)
