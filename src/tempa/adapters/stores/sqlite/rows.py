"""Questions about many rows that are not one statement run for each: several, or one for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import encode

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence


def start_jobs(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Take these jobs, open their attempts and say so; a row for each that was taken."""
    taken = [sql.take_job(connection, **_only(row, "job_id", "epoch", "sequence", *_LEASE)) for row in rows]
    started = [row for row, job in zip(rows, taken, strict=True) if job is not None]
    attempts = [{**row, "started_at": row["now"]} for row in started]
    events = [{**row, "id": row["event_id"], "type": "job.started", "at": row["now"]} for row in started]
    sql.open_attempt(connection, attempts)
    sql.insert_event(connection, events)
    return [job for job in taken if job is not None]


def end_attempts(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """End these attempts; a row for each that was not fenced off."""
    ended = []
    for row in rows:
        end = sql.end_attempt(connection, **{name: row[name] for name in row if name not in _NOT_THE_JOBS})
        if end is not None:
            ended.append(end)
            sql.close_attempt(connection, **_only(row, "job_id", "epoch", *_USAGE, *_ATTEMPTS_OWN))
            _tell(sql, connection, row, end)
            if row["compute_time_ms"] > 0:
                spent = _only(row, "ended_at", "compute_time_ms")
                sql.add_compute(connection, account=end["account"], **spent)
    return ended


def _tell(sql: Any, connection: sqlite3.Connection, row: Mapping[str, Any], end: Any) -> None:
    """The stages it had reached, then its end."""
    if row["reached"] is not None:
        first = end["sequence"] - row["events"] + 1
        reached = _only(row, "reached", "job_id", "ended_at")
        sql.tell_stages(connection, account=end["account"], first=first, **reached)
    event = {"id": row["event_id"], "type": row["event_type"], "at": row["ended_at"]}
    sql.insert_event(connection, [{**row, **event, "account": end["account"], "sequence": end["sequence"]}])


def beat(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Prolong these leases; a row for each that holds."""
    beats = [sql.beat_one(connection, **row) for row in rows]
    return [row for row in beats if row is not None]


def open_delivery_attempts(
    sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Put these attempts on record; their numbers."""
    return list(sql.open_delivery_attempts(connection, attempts=encode(rows)))


def end_delivery_attempts(
    sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """End these attempts; a row for each that was not fenced off."""
    return list(sql.end_delivery_attempts(connection, endings=encode(rows)))


def insert_nonces(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """A row for each nonce that was not used before."""
    return _returned(sql.insert_nonce(connection, **row) for row in rows)


def insert_signatures(
    sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """A row for each signature that its source had not told of before."""
    return _returned(sql.insert_signature(connection, **row) for row in rows)


def insert_receipts(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """A row for each receipt that was not posted before."""
    return _returned(sql.insert_receipt(connection, **row) for row in rows)


def insert_outflows(sql: Any, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """A row for each outflow that was not posted before."""
    return _returned(sql.insert_outflow(connection, **row) for row in rows)


def _returned(rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if row is not None]


_LEASE = ("worker", "now", "lease_until")
_USAGE = ("compute_time_ms", "peak_rss_bytes")
_ATTEMPTS_OWN = ("ended_at", "outcome", "attempt_code")
_TOLD = ("reached", "event_id", "event_type", "body", "announce")
_NOT_THE_JOBS = (*_ATTEMPTS_OWN, *_TOLD)


def _only(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}
