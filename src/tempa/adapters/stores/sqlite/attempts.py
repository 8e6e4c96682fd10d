"""The life of an attempt: claimed, kept alive, ended by its worker or taken over. Every write fenced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import encode, job_from
from tempa.adapters.stores.sqlite import endings
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.event_log import Entry, append, log_topics, stage_entries
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.work import job_topic, lane_topic
from tempa.jobs import events
from tempa.jobs.model import BeatAnswer, Claimed, Lease, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from tempa.jobs.model import Beat, Ending, Job


class AttemptsPart(Access):
    """`JobStore`: claim, beat, settle, expired, take_over, void_leases."""

    async def claim(
        self, worker: str, lanes: Sequence[str], limit: int, lease_seconds: float
    ) -> list[Claimed]:
        """Take up to `limit` jobs of `lanes` that are due, best first."""
        wanted = encode(sorted(set(lanes)))

        def transaction(connection: sqlite3.Connection) -> Done[list[Claimed]]:
            lease_until = self._lease_until(lease_seconds)
            due = {"lanes": wanted, "now": self._now(), "limit": limit}
            return _claim(connection, due, worker, lease_until)

        return await self._write(transaction)

    async def beat(self, beats: Sequence[Beat], lease_seconds: float) -> list[BeatAnswer]:
        """Prolong these leases and record what their attempts have reached, in one write."""

        def transaction(connection: sqlite3.Connection) -> Done[list[BeatAnswer]]:
            lease_until, now = self._lease_until(lease_seconds), self._now()
            answers = [_beat(connection, beat, lease_until, now) for beat in beats]
            topics = tuple(topic for answer in answers for topic in answer.topics)
            return Done([answer.answer for answer in answers], topics)

        return await self._write(transaction)

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        """End the attempt. False: the lease was lost, and nothing was written."""
        return await self._write(lambda connection: _settle(connection, lease, ending, self._now()))

    async def expired(self, limit: int) -> list[Claimed]:
        """Leases that have run out, the longest over first."""
        return await self._read(
            lambda connection: [
                Claimed(Lease(row["id"], row["epoch"]), job_from(row))
                for row in SQL.expired(connection, now=self._tick(), limit=limit)
            ]
        )

    async def take_over(self, lease: Lease, ending: Ending) -> bool:
        """End the attempt in its worker's place, if its lease is still out at this moment."""
        return await self._write(
            lambda connection: _settle(connection, lease, ending, self._now(), lapsed_by=self._tick())
        )

    async def void_leases(self) -> int:
        """At start, with the directory's lock held: every lease is a dead process's, and expires now."""
        return await self._write(lambda connection: Done(SQL.void_leases(connection)))

    def _lease_until(self, lease_seconds: float) -> int:
        return self._tick() + round(lease_seconds * 1000)


def _claim(
    connection: sqlite3.Connection, due: dict[str, Any], worker: str, lease_until: int
) -> Done[list[Claimed]]:
    rows = SQL.claim(connection, **due, worker=worker, lease_until=lease_until)
    # The order in which "returning" gives rows is nobody's promise.
    rows = sorted(rows, key=lambda row: (-row["priority"], row["run_at"], row["number"]))
    jobs = [job_from(row) for row in rows]
    SQL.open_attempt(
        connection,
        [{"job_id": job.id, "epoch": job.epoch, "worker": worker, "started_at": due["now"]} for job in jobs],
    )
    for job in jobs:
        started = Entry("job.started", events.started(job.id, job.request, job.epoch))
        append(
            connection,
            [started],
            account=job.account,
            job_id=job.id,
            last=job.sequence,
            now=due["now"],
        )
    topics = tuple(topic for job in jobs for topic in log_topics(job.id))
    return Done([Claimed(Lease(job.id, job.epoch), job) for job in jobs], topics)


def _beat(connection: sqlite3.Connection, beat: Beat, lease_until: int, now: int) -> Done[BeatAnswer]:
    job_id, entries = beat.lease.job_id, stage_entries(beat.stages)
    row = SQL.beat(
        connection,
        job_id=job_id,
        epoch=beat.lease.epoch,
        lease_until=lease_until,
        stage=beat.stages[-1].name if beat.stages else None,
        fraction=beat.fraction,
        events=len(entries),
    )
    if row is None:
        return Done(BeatAnswer(held=False, cancel_requested=False))
    answer = BeatAnswer(held=True, cancel_requested=bool(row["cancel_requested"]))
    if entries:
        append(connection, entries, account=row["account"], job_id=job_id, last=row["sequence"], now=now)
        return Done(answer, log_topics(job_id))
    return Done(answer, () if beat.fraction is None else (job_topic(job_id),))


def _settle(
    connection: sqlite3.Connection, lease: Lease, ending: Ending, now: int, *, lapsed_by: int | None = None
) -> Done[bool]:
    row = SQL.job_by_id(connection, job_id=lease.job_id)
    if row is None:
        return Done(answer=False)
    job = job_from(row)
    ending = endings.honour_cancel(job, ending)
    entries = [*stage_entries(ending.stages), endings.entry(job, lease.epoch, ending, now)]
    last = SQL.end_attempt(
        connection,
        job_id=lease.job_id,
        epoch=lease.epoch,
        lapsed_by=lapsed_by,
        events=len(entries),
        **endings.columns(ending, now),
    )
    if last is None:
        return Done(answer=False)
    _close_attempt(connection, lease, ending, now)
    append(connection, entries, account=job.account, job_id=job.id, last=last, now=now)
    return Done(answer=True, topics=_topics_after(job, ending))


def _close_attempt(connection: sqlite3.Connection, lease: Lease, ending: Ending, now: int) -> None:
    usage = endings.usage_of(ending)
    SQL.close_attempt(
        connection,
        job_id=lease.job_id,
        epoch=lease.epoch,
        ended_at=now,
        outcome=endings.OUTCOMES[type(ending)],
        code=endings.code_of(ending),
        compute_time_ms=usage.compute_time_ms,
        peak_rss_bytes=usage.peak_rss_bytes,
    )


def _topics_after(job: Job, ending: Ending) -> tuple[str, ...]:
    status, _ = endings.target(ending)
    frees_a_twin = job.work_key is not None  # one that the claims have passed over for this attempt
    again = (lane_topic(job.request.lane),) if status is Status.QUEUED or frees_a_twin else ()
    return (*log_topics(job.id), *again)
