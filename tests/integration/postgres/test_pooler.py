"""Behind a transaction pooler: every transaction on another session, and none of them ours for long."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tempa.adapters.stores.migrations import SCHEMA_VERSION
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.schema import prepare, version_of
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.jobs.model import Beat, Verdict
from tempa.testing.contracts.bench import ROOMY, planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DELIVERED,
    LANE,
    LEASE_SECONDS,
    a_key,
    a_new_job,
    an_outcome,
)
from tempa.webhooks.room import Room
from tests.integration.postgres.sessions import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CLOCK = SystemClock()
POOLER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
POOL = 3
PORT = 6432
TASKS = 40
NOBODY = 65534

CONFIG = """
[databases]
* = host={server} port=5432 user=tempa

[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {pool}
ignore_startup_parameters = extra_float_digits
"""

pytestmark = [
    pytest.mark.allowed_skip("pgbouncer is no wheel: it is there where Debian's package is"),
    pytest.mark.skipif(POOLER is None, reason="there is no pgbouncer: apt-get install pgbouncer"),
]


@contextmanager
def running_pooler(server: str) -> Iterator[str]:
    """A pgbouncer before the server whose socket lies in `server`; the folder of its own socket."""
    with tempfile.TemporaryDirectory(prefix="tempa-pooler-") as name:
        folder = Path(name)
        config = folder / "pooler.ini"
        config.write_text(CONFIG.format(server=server, port=PORT, folder=folder, pool=POOL))
        is_root = os.geteuid() == 0  # as which it refuses to run
        if is_root:
            shutil.chown(folder, NOBODY, NOBODY)
        assert POOLER is not None
        process = subprocess.Popen(
            [POOLER, "--quiet", config],
            stderr=subprocess.DEVNULL,
            user=NOBODY if is_root else None,
            group=NOBODY if is_root else None,
            extra_groups=[] if is_root else None,
        )
        try:
            yield name
        finally:
            process.kill()
            process.wait()


async def until_open(url: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                connection = await asyncpg.connect(url, statement_cache_size=0)
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0)
            else:
                await connection.close()
                return


@pytest.fixture
async def pooled(database: str) -> AsyncIterator[str]:
    """The URL of a fresh database by way of the pooler."""
    parts = urlsplit(database)
    with running_pooler(parse_qs(parts.query)["host"][0]) as folder:
        url = f"postgresql://tempa@{parts.path}?host={folder}&port={PORT}"
        await until_open(url)
        yield url


@pytest.fixture
async def stores(pooled: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """Two processes' stores, with more connections together than the pooler has to the server."""
    address = Address(pooled, pooled=True)
    here, there = [await PostgresStore.open(address, wake=InProcessWake()) for _ in range(2)]
    yield here, there
    await here.close()
    await there.close()


async def test_forty_tasks_share_three_sessions_and_every_promise_holds(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    ended: list[str] = []

    async def live(number: int) -> Verdict:
        store = stores[number % 2]
        admission = await store.admit(a_new_job(CLOCK, key=a_key(f"k{number // 2}")))  # each key twice
        while taken := await store.claim(f"w{number}", [LANE], 2, LEASE_SECONDS):
            held = await store.beat([Beat(lease=claimed.lease) for claimed in taken], LEASE_SECONDS)
            assert all(answer.held for answer in held)
            for claimed in taken:
                assert await store.settle(claimed.lease, COMPLETED)
                ended.append(claimed.job.id)
        return admission.verdict

    async with asyncio.timeout(PATIENCE_SECONDS):
        verdicts = await asyncio.gather(*(live(number) for number in range(TASKS)))

    assert Counter(verdicts) == {Verdict.ADMITTED: TASKS // 2, Verdict.REPLAYED: TASKS // 2}
    assert len(ended) == len(set(ended)) == TASKS // 2


async def test_events_are_placed_and_delivered_once(stores: tuple[PostgresStore, PostgresStore]) -> None:
    here, there = stores
    await asyncio.gather(*(here.admit(a_new_job(CLOCK)) for _ in range(TASKS)))
    plans = [planned(event, f"https://{event.job_id}.example") for event in await here.unplanned(100)]

    made = await asyncio.gather(*(store.fan_out(plans) for store in stores for _ in range(3)))
    takes = await asyncio.gather(
        *(store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS) for store in stores for _ in range(5))
    )
    settled = await asyncio.gather(
        *(
            there.settle_delivery(one, an_outcome("delivered", 200), DELIVERED)
            for take in takes
            for one in take.taken
        )
    )

    assert sum(made) == TASKS
    assert len({one.id for take in takes for one in take.taken}) == len(settled) == TASKS
    assert all(settled)
    assert len({event.position for event in await here.feed(ACCOUNT, 0, 100)}) == TASKS


async def test_the_bounds_of_one_transaction_are_nobody_elses(
    stores: tuple[PostgresStore, PostgresStore], pooled: str
) -> None:
    """lock_timeout and the like are said for each transaction: in a session they would stay."""
    await asyncio.gather(*(stores[number % 2].counts() for number in range(TASKS)))
    await asyncio.gather(
        *(stores[number % 2].claim("w", [LANE], 1, LEASE_SECONDS) for number in range(TASKS))
    )
    others = [await asyncpg.connect(pooled, statement_cache_size=0) for _ in range(POOL)]
    for other in others:
        await other.execute("begin")
    left = [await other.fetchval("select current_setting('lock_timeout')") for other in others]
    isolation = [await other.fetchval("select current_setting('transaction_isolation')") for other in others]
    for other in others:
        await other.execute("rollback")
        await other.close()

    assert left == ["0"] * POOL
    assert isolation == ["read committed"] * POOL


async def test_a_database_is_made_ready_by_way_of_the_pooler(pooled: str) -> None:
    await asyncio.gather(*(prepare(pooled) for _ in range(4)))

    connection = await asyncpg.connect(pooled, statement_cache_size=0)
    version = await version_of(connection)
    await connection.close()
    assert version == SCHEMA_VERSION
