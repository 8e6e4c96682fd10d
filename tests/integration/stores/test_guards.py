"""The schema's own guards: what stands below the store's statements, should one of them be wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.samples import COMPLETED, DELIVERED, an_outcome

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.contracts.store import StoreBench

URL = "https://hooks.example/a"


@pytest.fixture
async def lived(bench: StoreBench, path: Path) -> Path:
    """A database in which a job ran and was announced; a second one is in its attempt."""
    claimed = await bench.start()
    assert await bench.store.settle(claimed.lease, COMPLETED)
    await bench.plan(URL)
    (taken,) = await bench.take(1)
    assert await bench.store.settle_delivery(taken, an_outcome(), DELIVERED)
    await bench.start()
    return path


def refuse(path: Path, statement: str) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        with pytest.raises(sqlite3.IntegrityError) as refusal:
            connection.execute(statement)
    return str(refusal.value)


def refuse_change(path: Path, table: str, change: str, which: str) -> str:
    return refuse(path, f"update {table} set {change} where {which}")  # noqa: S608 - text of this file


@pytest.mark.parametrize(
    "change",
    [
        "id = 'evt_x'",
        "account = 'globex'",
        "sequence = 99",
        "type = 'job.failed'",
        "at = 0",
        "body = '{}'",
        "announce = '{}'",
        "position = 99",
    ],
)
async def test_an_event_is_never_changed(lived: Path, change: str) -> None:
    assert "never changed" in refuse_change(lived, "event", change, "type = 'job.completed'")


async def test_an_event_without_a_place_is_given_one_and_nothing_else(lived: Path) -> None:
    assert "never changed" in refuse(
        lived, "update event set position = 99, body = '{}' where position is null"
    )

    with closing(sqlite3.connect(lived, isolation_level=None)) as connection:
        placed = connection.execute("update event set position = 99 where position is null and sequence = 1")
        assert placed.rowcount == 1


@pytest.mark.parametrize(
    "change", ["outcome = 'failed'", "ended_at = 0", "worker = 'w9'", "code = 'X'", "compute_time_ms = 0"]
)
async def test_a_closed_attempt_is_never_changed(lived: Path, change: str) -> None:
    assert "never changed" in refuse_change(lived, "attempt", change, "outcome = 'completed'")


@pytest.mark.parametrize("change", ["worker = 'w9'", "started_at = 0", "epoch = 2"])
async def test_an_open_attempt_can_only_be_closed(lived: Path, change: str) -> None:
    assert "never changed" in refuse_change(lived, "attempt", change, "outcome is null")


@pytest.mark.parametrize(
    "change", ["http_status = 200", "outcome = 'x'", "attempt = 2", "timings = '{}'", "hint = 'x'"]
)
async def test_a_closed_delivery_attempt_is_never_changed(lived: Path, change: str) -> None:
    assert "never changed" in refuse_change(lived, "delivery_attempt", change, "outcome is not null")


SECOND_ENDING = """
insert into event (id, account, job_id, sequence, type, at, body)
select 'evt_x', account, id, sequence + 1, 'job.failed', 1, '{}' from job where status = 'completed'
"""
SAME_SEQUENCE = """
insert into event (id, account, job_id, sequence, type, at, body)
select 'evt_x', account, id, sequence, 'job.stage', 1, '{}' from job limit 1
"""
SECOND_DELIVERY = """
insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at,
                      next_at, message)
select 'dlv_x', account, event_number, endpoint_number, job_id, type, 'pending', 1, 1, '{}'
from delivery limit 1
"""
STRANGER = "insert into attempt (job_id, epoch, worker, started_at) values ('nowhere', 1, 'w', 1)"


@pytest.mark.parametrize(
    ("statement", "guard"),
    [
        (SECOND_ENDING, "event.job_id"),
        (SAME_SEQUENCE, "event.job_id, event.sequence"),
        (SECOND_DELIVERY, "delivery.event_number, delivery.endpoint_number"),
        (STRANGER, "FOREIGN KEY"),
        ("update job set status = 'done'", "CHECK"),
        ("update job set lease_until = 1 where status = 'completed'", "CHECK"),
        ("update job set result = null where status = 'completed'", "CHECK"),
        ("update job set status = 'failed', lease_until = null, completed_at = 1", "CHECK"),
        ("update job set priority = 'high'", "INTEGER"),
        ("insert into feed values (2, 0)", "CHECK"),
        ("update delivery set status = 'leased'", "CHECK"),
    ],
)
async def test_what_cannot_be_is_refused(lived: Path, statement: str, guard: str) -> None:
    assert guard in refuse(lived, statement)


async def test_an_attempt_tells_what_it_cost_and_how_it_ended(lived: Path) -> None:
    with closing(sqlite3.connect(lived)) as connection:
        rows = connection.execute(
            "select epoch, worker, outcome, code, compute_time_ms, peak_rss_bytes, ended_at - started_at"
            " from attempt order by started_at, outcome desc"
        ).fetchall()

    assert rows == [(1, "w1", "completed", None, 12, 91_000_000, 0), (1, "w1", None, None, None, None, None)]
