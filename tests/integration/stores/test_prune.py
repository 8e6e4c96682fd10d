"""Pruning beside everything else: what a slice reads is bounded, and it goes by indexes."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.access import SQL
from tempa.adapters.stores.sqlite.connections import open_reader, open_writer
from tempa.adapters.stores.sqlite.readers import Readers
from tempa.adapters.stores.sqlite.schema import prepare
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.stores.sqlite.writer import Writer
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import from_ms
from tempa.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FINISHED = 50_000
SLICE = 25
TABLES = ("job", "attempt", "event", "idempotency", "delivery", "delivery_attempt", "tombstone")
ROWS_A_JOB = (1, 1, 3, 1, 1, 1, -1)
STEPS_A_JOB_MAX = 1000

# Jobs whose files were removed long ago, with a key, an attempt, three events and a delivery each.
JOBS = f"""
insert into job (id, account, status, engine, lane, priority, created_at, completed_at, run_at, epoch,
                 retained_until, sequence, removed, tags, request, result)
with recursive n(i) as (select 1 union all select i + 1 from n where i < {FINISHED})
select 'cad_' || i, 'acme', 'completed', 'e', 'cpu', 5, i, i, 1, 1, i, 3, 1, '{{}}', '{{}}', '{{}}' from n;
insert into idempotency select 'acme', '/v1', 0, 'k' || number, 'f', id, 1 from job;
insert into attempt (job_id, epoch, worker, started_at, ended_at, outcome)
select id, 1, 'w', 1, 9, 'completed' from job;
insert into event (id, account, job_id, sequence, type, at, body, position)
select 'evt_' || number || '.' || value, 'acme', job.id, value, 'job.' || value, 1, '{{}}', 3 * number + value
from job, json_each('[1, 2, 3]');
insert into endpoint (number, id, account, url, host, origin, created_at, changed_at)
values (1, 'ep_1', 'acme', 'https://hooks.example', 'hooks.example', 'job', 1, 1);
insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at,
                      finished_at, message)
select 'dlv_' || number, 'acme', number, 1, job_id, 't', 'delivered', 1, 1, 9, '{{}}'
from event where sequence = 3;
insert into delivery_attempt (delivery_number, attempt, started_at, outcome)
select number, 1, 1, 'delivered' from delivery;
"""  # noqa: S608 - text of this file


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database full of jobs past their time."""
    path = tmp_path_factory.mktemp("aged") / "tempa.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma synchronous = off")
        connection.executescript(f"begin; {JOBS} commit;")
    return path


@dataclass
class Gauge:
    """Counts what SQLite's virtual machine does for a store's writer, the checks of foreign keys included."""

    path: Path
    steps: int = 0

    def connect(self) -> sqlite3.Connection:
        connection = open_writer(self.path)
        connection.set_progress_handler(self._count, 1)
        return connection

    def _count(self) -> None:
        self.steps += 1


@pytest.fixture
def gauge(aged: Path) -> Gauge:
    return Gauge(aged)


@pytest.fixture
async def store(gauge: Gauge) -> AsyncIterator[SqliteStore]:
    clock = ManualClock(from_ms(10 * FINISHED))
    wake = InProcessWake(clock)
    store = SqliteStore(Writer(gauge.connect, wake.ring), Readers(partial(open_reader, gauge.path), 1), clock)
    yield store
    await store.close()


def counts(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"select count(*) from {table}").fetchone()[0] for table in TABLES]  # noqa: S608


@pytest.mark.parametrize("statistics", ["", "analyze"])
async def test_a_slice_costs_what_its_jobs_cost(
    aged: Path, store: SqliteStore, gauge: Gauge, statistics: str
) -> None:
    """Among 50,000 that are as old: each takes its own rows along, and no other is read."""
    with closing(sqlite3.connect(aged)) as connection:
        connection.execute(statistics)
    before, after = counts(aged), None
    for _ in range(8):
        gauge.steps = 0
        pruned = await store.prune(0.0, after, SLICE)
        assert pruned.jobs == SLICE
        assert gauge.steps < SLICE * STEPS_A_JOB_MAX
        after = pruned.further

    gone = 8 * SLICE
    assert counts(aged) == [count - gone * rows for count, rows in zip(before, ROWS_A_JOB, strict=True)]


async def test_what_may_not_go_is_looked_at_once_a_pass(aged: Path, store: SqliteStore, gauge: Gauge) -> None:
    """20,000 jobs with a dead letter each stand before the first that may go."""
    with closing(sqlite3.connect(aged)) as connection, connection:
        connection.execute(
            "update delivery set status = 'dead', reason = 'exhausted' "
            "where job_id in (select id from job order by retained_until, number limit 20000)"
        )
    after, costs, gone = None, [], 0
    while not gone:
        gauge.steps = 0
        pruned = await store.prune(0.0, after, SLICE)
        costs.append(gauge.steps)
        after, gone = pruned.further, pruned.jobs

    assert len(costs) == 20_000 // SLICE + 1
    assert max(costs[:-1]) < SLICE * 100


@pytest.mark.parametrize(
    ("name", "table", "index"),
    [
        ("spent_jobs", "job", "job_spent"),
        ("spent_jobs", "delivery", "delivery_job"),
        ("spent_jobs", "event", "sqlite_autoindex_event_2"),
        ("endpoints_of", "delivery", "delivery_job"),
        ("forget_deliveries", "delivery", "delivery_job"),
        ("forget_events", "event", "sqlite_autoindex_event_2"),
        ("forget_attempts", "attempt", "PRIMARY KEY"),
        ("forget_keys", "idempotency", "idempotency_job"),
        ("forget_jobs", "job", "sqlite_autoindex_job_1"),
        ("gone_at", "tombstone", "PRIMARY KEY"),
        ("forget_tombstones", "old", "tombstone_gone"),
    ],
)
def test_a_prune_finds_its_rows_by_an_index(aged: Path, name: str, table: str, index: str) -> None:
    text = getattr(SQL, name).sql
    parameters = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
    with closing(sqlite3.connect(aged)) as connection:
        steps = [row[3] for row in connection.execute(f"explain query plan {text}", parameters)]

    (step, *_) = [step for step in steps if re.match(rf"(SEARCH|SCAN) {table}\b", step)]
    assert re.match(rf"SEARCH {table} USING (COVERING )?(INDEX )?{index}\b", step), steps
