"""Finished jobs by the million, written by the database itself: copies of one that really went through.

Each copy has all that the product keeps of a job: the job, its key, its attempt and its three events,
announced long ago.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import asyncpg

from bench.queue.own.cycles import claim, complete
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import a_key, a_new_job

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.jobs.ports import JobStore

JOB_BYTES_MAX = 4500  # of disk, a job: measured 2,886 on SQLite, and 3,930 on PostgreSQL without its log
_SLICE = 50_000  # jobs a transaction
_TOLD_EVERY = 500_000
_TABLES = ("job", "idempotency", "attempt", "event")

# What a copy has of its own. Ids are older than any that is made now, and in order, as real ones are.
_JOB_ID = "'cad_00' || {hex}"
_OWN = {
    ("job", "id"): _JOB_ID,
    ("idempotency", "job_id"): _JOB_ID,
    ("idempotency", "key"): "'k' || n.n",
    ("attempt", "job_id"): _JOB_ID,
    ("event", "id"): "'evt_0' || sample.sequence || {hex}",
    ("event", "job_id"): _JOB_ID,
    ("event", "position"): "n.n * 4 + sample.sequence",
}
_NOT_COPIED = "number"  # counted by the database


async def sample(store: JobStore) -> str:
    """The id of a job that went through."""
    clock = SystemClock()
    plain: dict[str, Any] = {"webhook_url": None, "webhook_events": (), "tags": {}}
    new = a_new_job(clock, key=a_key("sample"), retention_days=365.0, **plain)
    await store.admit(new)
    (claimed,) = await claim(store, 1)
    await complete(store, claimed)
    return new.id


async def fill_postgres(url: str, sample_id: str, jobs: int) -> None:
    """`jobs` copies of `sample_id`."""
    connection = await asyncpg.connect(url)
    try:
        # The copies are whole by construction: no need to look each reference up.
        await connection.execute("set session_replication_role = replica; set synchronous_commit = off")
        listed = "select column_name from information_schema.columns where table_name = $1"
        columns = {
            table: [row["column_name"] for row in await connection.fetch(listed, table)] for table in _TABLES
        }
        for first, last in _slices(jobs):
            numbers = f"select n from generate_series({first}, {last}) as n"  # noqa: S608 - integers
            for table in _TABLES:
                hexadecimal = "lpad(to_hex(n.n), 24, '0')"
                await connection.execute(_copy(table, columns[table], numbers, hexadecimal, sample_id))
        await connection.execute("vacuum analyze")
        await connection.execute("checkpoint")
    finally:
        await connection.close()


def fill_sqlite(path: str, sample_id: str, jobs: int) -> None:
    """`jobs` copies of `sample_id`, while no store has the file open."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute("pragma cache_size = -1000000")
        columns = {
            table: [row[1] for row in connection.execute(f"pragma table_info({table})")] for table in _TABLES
        }
        for first, last in _slices(jobs):
            counting = f"select {first} union all select n + 1 from r where n < {last}"  # noqa: S608 - integers
            numbers = f"with recursive r (n) as ({counting}) select n from r"  # noqa: S608 - integers
            connection.execute("begin")
            for table in _TABLES:
                connection.execute(_copy(table, columns[table], numbers, "printf('%024x', n.n)", sample_id))
            connection.execute("commit")
        connection.execute("pragma wal_checkpoint(truncate)")


def _copy(table: str, columns: Sequence[str], numbers: str, hexadecimal: str, sample_id: str) -> str:
    copied = [column for column in columns if column != _NOT_COPIED]
    values = [_OWN.get((table, column), f"sample.{column}").format(hex=hexadecimal) for column in copied]
    key = "id" if table == "job" else "job_id"
    # Nothing in it comes from outside: the names are the schema's own.
    return (
        f"insert into {table} ({', '.join(copied)}) select {', '.join(values)} "  # noqa: S608
        f"from {table} as sample cross join ({numbers}) as n "
        f"where sample.{key} = '{sample_id}' order by n.n"
    )


def _slices(jobs: int) -> Iterator[tuple[int, int]]:
    for first in range(1, jobs + 1, _SLICE):
        if (first - 1) % _TOLD_EVERY == 0:
            print(f"filled: {first - 1:,} of {jobs:,} jobs", file=sys.stderr, flush=True)
        yield first, min(first + _SLICE - 1, jobs)
