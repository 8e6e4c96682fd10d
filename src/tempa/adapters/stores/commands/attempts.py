"""The life of an attempt: kept alive, ended by its worker or taken over. Every write fenced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands import endings
from tempa.adapters.stores.commands.event_log import event_rows, log_topics, stage_entries, told, told_text
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Done, Timed
from tempa.adapters.stores.commands.requests import RequestsPart
from tempa.adapters.stores.sql import encode, job_from
from tempa.core.crash import crash_point
from tempa.core.work import job_topic, lane_topic
from tempa.jobs.model import BeatAnswer, Claimed, Ending, Lease, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.endings import Held
    from tempa.adapters.stores.commands.flow import Flow, Moment
    from tempa.adapters.stores.commands.requests import Requests
    from tempa.jobs.model import Beat


class AttemptsPart(RequestsPart):
    """`JobStore`: beat, settle, expired, take_over, void_leases."""

    async def beat(self, beats: Sequence[Beat], lease_seconds: float) -> list[BeatAnswer]:
        """Prolong these leases and record what their attempts have reached, in one write."""
        return await self._write(beat_all, beats, lease_seconds)

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        """End the attempt. False: the lease was lost, and nothing was written."""
        (written,) = await self._write(settle_all, [(lease, ending, False)], self._requests)
        return written

    async def expired(self, limit: int) -> list[Claimed]:
        """Leases that have run out, the longest over first."""
        return await self._read(_expired, limit)

    async def take_over(self, lease: Lease, ending: Ending) -> bool:
        """End the attempt in its worker's place, if its lease is still out at this moment."""
        (written,) = await self._write(settle_all, [(lease, ending, True)], self._requests)
        return written

    async def void_leases(self) -> int:
        """At start, with the directory's lock held: every lease is a dead process's, and expires now."""
        return await self._write(_void)


def beat_all(beats: Sequence[Beat], lease_seconds: float) -> Flow[Done[list[BeatAnswer]]]:
    """Prolong these leases. One that is lost is told so."""
    moment = yield MOMENT
    lease_until = moment.lease_until(lease_seconds)
    rows = yield ASK.beat([_beat_row(beat, lease_until) for beat in beats])
    held = {(row["job_id"], row["epoch"]): row for row in rows}
    answers: list[BeatAnswer] = []
    events: list[dict[str, Any]] = []
    topics: list[str] = []
    for beat in beats:
        row = held.get((beat.lease.job_id, beat.lease.epoch))
        answers.append(BeatAnswer(row is not None, bool(row and row["cancel_requested"])))
        if row is not None:
            events += _stage_rows(beat, row, moment)
            topics += _topics_of(beat)
    if events:
        yield ASK.insert_event(events)
    crash_point("beat.in_commit")
    return Done(answers, tuple(topics))


def _beat_row(beat: Beat, lease_until: int) -> dict[str, Any]:
    return {
        "job_id": beat.lease.job_id,
        "epoch": beat.lease.epoch,
        "lease_until": lease_until,
        "stage": beat.stages[-1].name if beat.stages else None,
        "fraction": beat.fraction,
        "events": len(beat.stages),
    }


def _stage_rows(beat: Beat, row: Any, moment: Moment) -> list[dict[str, Any]]:
    entries = stage_entries(beat.stages)
    return event_rows(
        entries, account=row["account"], job_id=beat.lease.job_id, last=row["sequence"], now=moment.now
    )


def _topics_of(beat: Beat) -> tuple[str, ...]:
    if beat.stages:
        return log_topics(beat.lease.job_id)
    return () if beat.fraction is None else (job_topic(beat.lease.job_id),)


Settlement = tuple[Lease, Ending, bool]
"""A lease, how its attempt ends, and whether that is a takeover."""


def settle_all(settlements: Sequence[Settlement], requests: Requests) -> Flow[Done[list[bool]]]:
    """End these attempts. Each is written or fenced off apart from the others."""
    job_ids = [lease.job_id for lease, _, _ in settlements]
    rows, moment = yield Timed(
        ASK.jobs_for_update(job_ids=encode(job_ids), unread=encode(requests.unread(job_ids)))
    )
    jobs = {row["id"]: endings.held(row, requests.of(row)) for row in rows}
    ends = [
        _End(jobs[lease.job_id], lease, endings.honour_cancel(jobs[lease.job_id], ending), moment, taken_over)
        for lease, ending, taken_over in settlements
        if lease.job_id in jobs
    ]
    rows = yield ASK.end_attempts([end.row() for end in ends])
    written = {(row["job_id"], row["epoch"]) for row in rows}
    crash_point("settle.in_commit")
    ended = [end for end in ends if end.key in written]
    topics = tuple(topic for end in ended for topic in _topics_after(end.job, end.ending))
    return Done([(lease.job_id, lease.epoch) in written for lease, _, _ in settlements], topics)


@dataclass(frozen=True, slots=True)
class _End:
    """One settlement, with the job as it stands under this transaction's lock."""

    job: Held
    lease: Lease
    ending: Ending
    moment: Moment
    taken_over: bool

    @property
    def key(self) -> tuple[str, int]:
        return self.lease.job_id, self.lease.epoch

    def row(self) -> dict[str, Any]:
        """What is written of it. `lapsed_by`: only if the lease has run out by then."""
        stages = stage_entries(self.ending.stages)
        end = endings.entry(self.job, self.lease.epoch, self.ending, self.moment.now)
        return {
            "job_id": self.lease.job_id,
            "epoch": self.lease.epoch,
            "lapsed_by": self.moment.tick if self.taken_over else None,
            "events": len(stages) + 1,
            "reached": told_text(stages) if stages else None,
            **told(end, prefix="event_"),
            "ended_at": self.moment.now,
            **endings.columns(self.ending, self.moment.now),
            **endings.attempt_columns(self.ending),
        }


def _topics_after(job: Held, ending: Ending) -> tuple[str, ...]:
    status, _ = endings.target(ending)
    frees_a_twin = job.work_key is not None  # one that the claims have passed over for this attempt
    again = (lane_topic(job.request.lane),) if status is Status.QUEUED or frees_a_twin else ()
    return (*log_topics(job.id), *again)


def _expired(limit: int) -> Flow[list[Claimed]]:
    moment = yield MOMENT
    rows = yield ASK.expired(now=moment.tick, limit=limit)
    return [Claimed(Lease(row["id"], row["epoch"]), job_from(row)) for row in rows]


def _void() -> Flow[Done[int]]:
    voided = yield ASK.void_leases()
    return Done(voided)
