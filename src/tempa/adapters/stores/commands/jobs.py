"""Jobs from the client's side and the janitor's: looked at, listed, canceled, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.event_log import Entry, event_rows, log_topics
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import encode, error_text, event_from, job_from
from tempa.core.clock import from_ms, to_ms
from tempa.core.crash import crash_point
from tempa.core.work import cancel_topic
from tempa.jobs import events
from tempa.jobs.model import TRANSITIONS, CancelOutcome, Status, Step, Tenant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Ask, Flow
    from tempa.core.events import Event
    from tempa.jobs.model import Job, JobError, JobFilter


class JobsPart(Access):
    """`JobStore`: all that is not an attempt's."""

    async def next_delayed(self, lanes: Sequence[str]) -> float | None:
        """Seconds until the first queued job of `lanes` that is not due yet will be."""
        return await self._read(_next_delayed, lanes)

    async def overdue(self, limit: int) -> list[Job]:
        """Queued jobs whose deadline has passed, the earliest first."""
        return await self._read(_overdue, limit)

    async def fail_queued(self, job_id: str, error: JobError) -> bool:
        """Fail a job that nobody took. False: it is no longer queued."""
        return await self._write(_fail_queued, job_id, error)

    async def next_tenant(self, after: Tenant | None) -> Tenant | None:
        """The next account with unfinished jobs on a GPU instance, in the order of (instance, account)."""
        return await self._read(_next_tenant, after)

    async def bound_jobs(self, tenant: Tenant, limit: int) -> list[Job]:
        """Its unfinished jobs there, the first to be admitted first."""
        bound = ASK.bound_jobs(gpu_instance_id=tenant.gpu_instance_id, account=tenant.account, limit=limit)
        return await self._read(_jobs, bound)

    async def cancel(self, account: str, job_id: str) -> tuple[CancelOutcome, Job] | None:
        """Cancel at once, ask the worker to, or say that it is too late. None: not this account's."""
        return await self._write(_cancel, account, job_id)

    async def job(self, account: str, job_id: str) -> Job | None:
        """One job."""
        return await self._read(_job, ASK.job_of_account(account=account, job_id=job_id))

    async def job_by_id(self, job_id: str) -> Job | None:
        """One job of whatever account: for links and tokens, which carry their own right."""
        return await self._read(_job, ASK.job_by_id(job_id=job_id))

    async def jobs(self, account: str, narrow: JobFilter, limit: int, before: str | None) -> list[Job]:
        """Newest first, from the one admitted before `before`."""
        conditions = _conditions(narrow)
        return await self._read(
            _jobs, ASK.list_jobs(account=account, before=before, limit=limit, **conditions)
        )

    async def queue_position(self, job: Job) -> int:
        """Queued jobs of its lane that go first."""
        return await self._read(_queue_position, job.id)

    async def finished_twin(self, job: Job) -> Job | None:
        """The newest completed job of the same account and `work_key` that still has its files."""
        return await self._read(_finished_twin, job.account, job.work_key)

    async def job_events(self, job_id: str, after: int, limit: int) -> list[Event]:
        """A job's log from sequence `after` + 1 on."""
        return await self._read(_events, ASK.job_events(job_id=job_id, after=after, limit=limit))

    async def feed(self, account: str, after: int, limit: int) -> list[Event]:
        """The account's events with a position beyond `after`, in that order."""
        return await self._read(_events, ASK.feed(account=account, after=after, limit=limit))

    async def mark_removed(self, account: str, job_id: str) -> bool:
        """Record that the files are gone. False: no such terminal job."""
        return await self._write(_mark_removed, account, job_id)

    async def lapsed(self, limit: int) -> list[Job]:
        """Terminal jobs whose retention is over and whose files were not removed yet."""
        return await self._read(_lapsed, limit)

    async def counts(self) -> Mapping[tuple[str, str], int]:
        """Jobs that wait or run, by status and lane."""
        return await self._read(_counts)

    async def oldest_queued(self, lane: str) -> datetime | None:
        """When the longest waiting job of a lane was admitted."""
        return await self._read(_oldest_queued, lane)


def _job(ask: Ask) -> Flow[Job | None]:
    row = yield ask
    return None if row is None else job_from(row)


def _jobs(ask: Ask) -> Flow[list[Job]]:
    rows = yield ask
    return [job_from(row) for row in rows]


def _events(ask: Ask) -> Flow[list[Event]]:
    rows = yield ask
    return [event_from(row) for row in rows]


def _next_delayed(lanes: Sequence[str]) -> Flow[float | None]:
    moment = yield MOMENT
    run_at = yield ASK.next_delayed(lanes=encode(lanes), now=moment.now)
    return None if run_at is None else (run_at - moment.now) / 1000


def _overdue(limit: int) -> Flow[list[Job]]:
    moment = yield MOMENT
    return (yield from _jobs(ASK.overdue(now=moment.now, limit=limit)))


def _next_tenant(after: Tenant | None) -> Flow[Tenant | None]:
    account, gpu_instance_id = after or ("", "")
    row = yield ASK.next_tenant(gpu_instance_id=gpu_instance_id, account=account)
    return None if row is None else Tenant(row["account"], row["gpu_instance_id"])


def _lapsed(limit: int) -> Flow[list[Job]]:
    moment = yield MOMENT
    return (yield from _jobs(ASK.lapsed(now=moment.now, limit=limit)))


def _finished_twin(account: str, work_key: str | None) -> Flow[Job | None]:
    moment = yield MOMENT
    return (yield from _job(ASK.finished_twin(account=account, work_key=work_key, now=moment.now)))


def _queue_position(job_id: str) -> Flow[int]:
    ahead = yield ASK.queue_position(job_id=job_id)
    return int(ahead or 0)


def _counts() -> Flow[dict[tuple[str, str], int]]:
    rows = yield ASK.count_jobs()
    return {(row["status"], row["lane"]): row["jobs"] for row in rows}


def _oldest_queued(lane: str) -> Flow[datetime | None]:
    admitted_at = yield ASK.oldest_queued(lane=lane)
    return None if admitted_at is None else from_ms(admitted_at)


def _mark_removed(account: str, job_id: str) -> Flow[Done[bool]]:
    marked = yield ASK.mark_removed(account=account, job_id=job_id)
    return Done(marked > 0)


def _conditions(narrow: JobFilter) -> dict[str, Any]:
    return {
        "status": narrow.status,
        "engine": narrow.engine,
        "code": narrow.code,
        "tag": narrow.tag,
        "since": None if narrow.since is None else to_ms(narrow.since),
    }


def _cancel(account: str, job_id: str) -> Flow[Done[tuple[CancelOutcome, Job] | None]]:
    row = yield ASK.job_for_update(job_id=job_id)
    if row is None or row["account"] != account:
        return Done(None)
    if row["status"] == Status.QUEUED:
        canceled = yield from _end_queued(job_id, Step.CANCEL)
        crash_point("cancel.in_commit")
        assert canceled is not None, "nobody else writes a row that this transaction holds"
        return Done((CancelOutcome.CANCELED, canceled), log_topics(job_id))
    if row["status"] == Status.PROCESSING:
        yield ASK.request_cancel(job_id=job_id)
        crash_point("cancel.wish_in_commit")
        asked = job_from((yield ASK.job_by_id(job_id=job_id)))
        return Done((CancelOutcome.REQUESTED, asked), (cancel_topic(job_id),))
    return Done((CancelOutcome.FINISHED, job_from(row)))


def _fail_queued(job_id: str, error: JobError) -> Flow[Done[bool]]:
    ended = yield from _end_queued(job_id, Step.FAIL, error)
    return Done(answer=False) if ended is None else Done(answer=True, topics=log_topics(job_id))


def _end_queued(job_id: str, step: Step, error: JobError | None = None) -> Flow[Job | None]:
    moment = yield MOMENT
    status, event_type = TRANSITIONS[Status.QUEUED, step]
    row = yield ASK.end_queued(
        job_id=job_id,
        status=status,
        completed_at=moment.now,
        error=None if error is None else error_text(error),
        code=None if error is None else error.code,
    )
    if row is None:
        return None
    job = job_from(row)
    parts = (
        events.canceled(job_id, job.request) if error is None else events.failed(job_id, job.request, error)
    )
    yield ASK.insert_event(
        event_rows(
            [Entry(event_type, parts)],
            account=job.account,
            job_id=job_id,
            last=job.sequence,
            now=moment.now,
        )
    )
    return job
