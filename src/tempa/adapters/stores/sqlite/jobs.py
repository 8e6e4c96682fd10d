"""Jobs from the client's side and the janitor's: looked at, listed, canceled, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import encode, error_text, event_from, job_from
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.event_log import Entry, append, log_topics
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.clock import from_ms, to_ms
from tempa.core.work import cancel_topic
from tempa.jobs import events
from tempa.jobs.model import TRANSITIONS, CancelOutcome, Status, Step

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from tempa.core.events import Event
    from tempa.jobs.model import Job, JobError, JobFilter


class JobsPart(Access):
    """`JobStore`: all that is not an attempt's."""

    async def next_delayed(self, lanes: Sequence[str]) -> float | None:
        """Seconds until the first queued job of `lanes` that is not due yet will be."""

        def query(connection: sqlite3.Connection) -> float | None:
            now = self._now()
            run_at = SQL.next_delayed(connection, lanes=encode(list(lanes)), now=now)
            return None if run_at is None else (run_at - now) / 1000

        return await self._read(query)

    async def overdue(self, limit: int) -> list[Job]:
        """Queued jobs whose deadline has passed, the earliest first."""
        return await self._read(
            lambda connection: _jobs(SQL.overdue(connection, now=self._now(), limit=limit))
        )

    async def fail_queued(self, job_id: str, error: JobError) -> bool:
        """Fail a job that nobody took. False: it is no longer queued."""

        def transaction(connection: sqlite3.Connection) -> Done[bool]:
            ended = _end_queued(connection, job_id, Step.FAIL, self._now(), error)
            return Done(answer=False) if ended is None else Done(answer=True, topics=log_topics(job_id))

        return await self._write(transaction)

    async def cancel(self, account: str, job_id: str) -> tuple[CancelOutcome, Job] | None:
        """Cancel at once, ask the worker to, or say that it is too late. None: not this account's."""
        return await self._write(lambda connection: _cancel(connection, account, job_id, self._now()))

    async def job(self, account: str, job_id: str) -> Job | None:
        """One job."""

        def query(connection: sqlite3.Connection) -> Job | None:
            row = SQL.job_of_account(connection, account=account, job_id=job_id)
            return None if row is None else job_from(row)

        return await self._read(query)

    async def job_by_id(self, job_id: str) -> Job | None:
        """One job of whatever account: for links and tokens, which carry their own right."""

        def query(connection: sqlite3.Connection) -> Job | None:
            row = SQL.job_by_id(connection, job_id=job_id)
            return None if row is None else job_from(row)

        return await self._read(query)

    async def jobs(self, account: str, narrow: JobFilter, limit: int, before: str | None) -> list[Job]:
        """Newest first, from the one admitted before `before`."""
        conditions = _conditions(narrow)
        return await self._read(
            lambda connection: _jobs(
                SQL.list_jobs(connection, account=account, before=before, limit=limit, **conditions)
            )
        )

    async def queue_position(self, job: Job) -> int:
        """Queued jobs of its lane that go first."""
        return await self._read(lambda connection: int(SQL.queue_position(connection, job_id=job.id) or 0))

    async def finished_twin(self, job: Job) -> Job | None:
        """The newest completed job of the same account and `work_key` that still has its files."""

        def query(connection: sqlite3.Connection) -> Job | None:
            key = {"account": job.account, "work_key": job.work_key}
            row = SQL.finished_twin(connection, **key, now=self._now())
            return None if row is None else job_from(row)

        return await self._read(query)

    async def job_events(self, job_id: str, after: int, limit: int) -> list[Event]:
        """A job's log from sequence `after` + 1 on."""
        return await self._read(
            lambda connection: [
                event_from(row) for row in SQL.job_events(connection, job_id=job_id, after=after, limit=limit)
            ]
        )

    async def feed(self, account: str, after: int, limit: int) -> list[Event]:
        """The account's events with a position beyond `after`, in that order."""
        return await self._read(
            lambda connection: [
                event_from(row) for row in SQL.feed(connection, account=account, after=after, limit=limit)
            ]
        )

    async def mark_removed(self, account: str, job_id: str) -> bool:
        """Record that the files are gone. False: no such terminal job."""
        return await self._write(
            lambda connection: Done(SQL.mark_removed(connection, account=account, job_id=job_id) > 0)
        )

    async def lapsed(self, limit: int) -> list[Job]:
        """Terminal jobs whose retention is over and whose files were not removed yet."""
        return await self._read(
            lambda connection: _jobs(SQL.lapsed(connection, now=self._now(), limit=limit))
        )

    async def counts(self) -> Mapping[tuple[str, str], int]:
        """Jobs by status and lane."""
        return await self._read(
            lambda connection: {
                (row["status"], row["lane"]): row["jobs"] for row in SQL.count_jobs(connection)
            }
        )

    async def oldest_queued(self, lane: str) -> datetime | None:
        """When the longest waiting job of a lane was admitted."""

        def query(connection: sqlite3.Connection) -> datetime | None:
            admitted_at = SQL.oldest_queued(connection, lane=lane)
            return None if admitted_at is None else from_ms(admitted_at)

        return await self._read(query)


def _jobs(rows: Iterable[Any]) -> list[Job]:
    return [job_from(row) for row in rows]


def _conditions(narrow: JobFilter) -> dict[str, Any]:
    tag_name, tag_value = narrow.tag or (None, None)
    return {
        "status": narrow.status,
        "engine": narrow.engine,
        "code": narrow.code,
        "tag_name": tag_name,
        "tag_value": tag_value,
        "since": None if narrow.since is None else to_ms(narrow.since),
    }


def _cancel(
    connection: sqlite3.Connection, account: str, job_id: str, now: int
) -> Done[tuple[CancelOutcome, Job] | None]:
    row = SQL.job_of_account(connection, account=account, job_id=job_id)
    if row is None:
        return Done(None)
    if row["status"] == Status.QUEUED:
        canceled = _end_queued(connection, job_id, Step.CANCEL, now)
        assert canceled is not None, "nobody else writes in this transaction"
        return Done((CancelOutcome.CANCELED, canceled), log_topics(job_id))
    if row["status"] == Status.PROCESSING:
        SQL.request_cancel(connection, job_id=job_id)
        asked = job_from(SQL.job_by_id(connection, job_id=job_id))
        return Done((CancelOutcome.REQUESTED, asked), (cancel_topic(job_id),))
    return Done((CancelOutcome.FINISHED, job_from(row)))


def _end_queued(
    connection: sqlite3.Connection, job_id: str, step: Step, now: int, error: JobError | None = None
) -> Job | None:
    status, event_type = TRANSITIONS[Status.QUEUED, step]
    row = SQL.end_queued(
        connection,
        job_id=job_id,
        status=status,
        completed_at=now,
        error=None if error is None else error_text(error),
        code=None if error is None else error.code,
    )
    if row is None:
        return None
    job = job_from(row)
    parts = (
        events.canceled(job_id, job.request) if error is None else events.failed(job_id, job.request, error)
    )
    append(
        connection,
        [Entry(event_type, parts)],
        account=job.account,
        job_id=job_id,
        last=job.sequence,
        now=now,
    )
    return job
