"""Taking jobs: accounts in turn, and of each account the most urgent first."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tempa.adapters.stores.commands.event_log import log_topics
from tempa.adapters.stores.commands.flow import ASK, Done
from tempa.adapters.stores.commands.requests import RequestsPart
from tempa.adapters.stores.commands.shares import Shares
from tempa.adapters.stores.sql import encode, job_from
from tempa.core.crash import crash_point
from tempa.core.ids import new_id
from tempa.jobs import events
from tempa.jobs.model import Claimed, Lease, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow, Moment
    from tempa.adapters.stores.commands.requests import Requests
    from tempa.adapters.stores.commands.shares import Waiting
    from tempa.jobs.model import Job
    from tempa.jobs.ports import StandBy


@dataclass(frozen=True, slots=True)
class Line:
    """Who waits, and at what moment. `due`: rows of accounts that came along, the most urgent first."""

    waiting: Sequence[Waiting]
    moment: Moment
    due: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class ReadyJobs(Protocol):
    """Where a claim looks for jobs: who waits in these lanes, and what of an account's is due."""

    def line(self, lanes: Sequence[str], limit: int) -> Flow[Line]: ...
    def due(self, lanes: Sequence[str], account: str, moment: Moment, limit: int) -> Flow[list[Any]]: ...
    def took(self, rows: Sequence[Any]) -> None: ...  # these rows of `due`, for good


class ClaimsPart(RequestsPart):
    """`JobStore.claim`. `ready` is the adapter's."""

    ready: ReadyJobs

    def __init__(self) -> None:
        super().__init__()
        self._shares = Shares()

    async def claim(
        self, worker: str, lanes: Sequence[str], limit: int, lease_seconds: float
    ) -> list[Claimed]:
        """Take up to `limit` jobs of `lanes` that are due."""
        return await self._write(claim, self._look(lanes, limit), worker, lease_seconds)

    def _look(self, lanes: Sequence[str], limit: int) -> Look:
        return Look(self.ready, self._shares, self._requests, sorted(set(lanes)), limit)

    @contextmanager
    def stand_by(self, worker: StandBy) -> Iterator[None]:  # noqa: ARG002 - an adapter may know how
        """Nothing is handed over at admission; rings and polls do."""
        yield


@dataclass(frozen=True, slots=True)
class Look:
    """One look for jobs."""

    ready: ReadyJobs
    shares: Shares
    requests: Requests
    lanes: Sequence[str]
    limit: int

    def choose(self, line: Line) -> Flow[list[Any]]:
        """The rows of up to `limit` jobs. An account's are looked up when its first turn comes."""
        turns = self.shares.turns(line.waiting)
        chosen: list[Any] = []
        due = {account: list(rows[::-1]) for account, rows in line.due.items()}
        while len(chosen) < self.limit and (account := turns.next()) is not None:
            if account not in due:
                rows = yield from self.ready.due(self.lanes, account, line.moment, self.limit - len(chosen))
                due[account] = rows[::-1]
            if due[account]:
                chosen.append(due[account].pop())
                turns.took()
            else:
                turns.drop()
        return chosen


def claim(look: Look, worker: str, lease_seconds: float) -> Flow[Done[list[Claimed]]]:
    """Take the jobs whose turn it is."""
    yield ASK.lock_claims()
    line = yield from look.ready.line(look.lanes, look.limit)
    if not line.waiting:
        return Done([])
    moment = line.moment
    due = yield from look.choose(line)
    started = [_started(row, moment) for row in due]
    lease = {"worker": worker, "now": moment.now, "lease_until": moment.lease_until(lease_seconds)}
    rows = yield ASK.start_jobs([{**_start_row(job), **lease} for job in started])
    taken = {row["id"] for row in rows}
    look.ready.took(due)
    jobs = [job for job in started if job.id in taken]
    look.requests.keep(jobs)
    look.shares.charge({each.account: each for each in line.waiting}, [job.account for job in jobs])
    crash_point("claim.in_commit")
    topics = tuple(topic for job in jobs for topic in log_topics(job.id))
    return Done([Claimed(Lease(job.id, job.epoch), job) for job in jobs], topics)


def _started(row: Any, moment: Moment) -> Job:
    """The job as it is once taken."""
    taken = {
        "status": Status.PROCESSING,
        "epoch": row["epoch"] + 1,
        "sequence": row["sequence"] + 1,
        "started_at": moment.now if row["started_at"] is None else row["started_at"],
    }
    return job_from({**row, **taken})


def _start_row(job: Job) -> dict[str, Any]:
    body, announce = events.started(job.id, job.request, job.epoch)
    return {
        "job_id": job.id,
        "account": job.account,
        "epoch": job.epoch,
        "sequence": job.sequence,
        "event_id": new_id("evt"),
        "body": encode(body),
        "announce": None if announce is None else encode(announce),
    }
