"""Taking jobs: accounts in turn, and of each account the most urgent first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.event_log import log_topics
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.shares import Shares, Waiting
from tempa.adapters.stores.sql import encode, job_from
from tempa.core.clock import from_ms
from tempa.core.ids import new_id
from tempa.jobs import events
from tempa.jobs.model import Claimed, Lease, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow, Moment
    from tempa.adapters.stores.commands.shares import Turns
    from tempa.jobs.model import Job


class ClaimsPart(Access):
    """`JobStore.claim`."""

    def __init__(self) -> None:
        super().__init__()
        self._shares = Shares()

    async def claim(
        self, worker: str, lanes: Sequence[str], limit: int, lease_seconds: float
    ) -> list[Claimed]:
        """Take up to `limit` jobs of `lanes` that are due."""
        wanted = encode(sorted(set(lanes)))
        return await self._write(_claim, self._shares, worker, wanted, limit, lease_seconds)


def _claim(
    shares: Shares, worker: str, lanes: str, limit: int, lease_seconds: float
) -> Flow[Done[list[Claimed]]]:
    yield ASK.lock_claims()
    moment = yield MOMENT
    waiting = yield from _waiting(lanes)
    due = yield from _choose(shares.turns(waiting.values()), lanes, limit, moment)
    started = [_started(row, moment) for row in due]
    lease = {"worker": worker, "now": moment.now, "lease_until": moment.lease_until(lease_seconds)}
    rows = yield ASK.start_jobs([{**_start_row(job), **lease} for job in started])
    taken = {row["id"] for row in rows}
    jobs = [job for job in started if job.id in taken]
    shares.charge(waiting, [job.account for job in jobs])
    topics = tuple(topic for job in jobs for topic in log_topics(job.id))
    return Done([Claimed(Lease(job.id, job.epoch), job) for job in jobs], topics)


def _waiting(lanes: str) -> Flow[dict[str, Waiting]]:
    rows = yield ASK.waiting_accounts(lanes=lanes)
    return {row["account"]: Waiting(row["account"], row["weight"], row["room"]) for row in rows}


def _choose(turns: Turns, lanes: str, limit: int, moment: Moment) -> Flow[list[Any]]:
    """The rows of up to `limit` jobs. An account's are looked up when its first turn comes."""
    chosen: list[Any] = []
    due: dict[str, list[Any]] = {}
    while len(chosen) < limit and (account := turns.next()) is not None:
        if account not in due:
            rows = yield ASK.due_jobs(lanes=lanes, account=account, now=moment.now, limit=limit - len(chosen))
            due[account] = rows[::-1]
        if due[account]:
            chosen.append(due[account].pop())
            turns.took()
        else:
            turns.drop()
    return chosen


def _started(row: Any, moment: Moment) -> Job:
    """The job as it is once taken."""
    job = job_from(row)
    return replace(
        job,
        status=Status.PROCESSING,
        epoch=job.epoch + 1,
        sequence=job.sequence + 1,
        started_at=job.started_at or from_ms(moment.now),
    )


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
