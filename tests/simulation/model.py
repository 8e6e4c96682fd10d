"""What the store promises, in a dict: no SQL, no batches, no marks; the state machine written once more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tempa.core.clock import to_ms
from tempa.jobs.model import Canceled, Completed, Failed, Released, Retried, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.jobs.model import Ending, Job, Lease

DAY_MS = 24 * 3600 * 1000
TERMINAL = ("completed", "failed", "canceled")
ENDED_AS = {Completed: "completed", Failed: "failed", Canceled: "canceled"}


@dataclass
class ModelJob:
    """A job as it ought to be. Times are milliseconds; `lease_until` on the clock of leases."""

    id: str
    place: int  # in the order of admission
    key: str | None
    fingerprint: str
    priority: int
    work_key: str | None
    run_at: int
    deadline_at: int | None
    retained_until: int
    status: str = "queued"
    epoch: int = 0
    crash_count: int = 0
    retry_count: int = 0
    cancel_requested: bool = False
    removed: bool = False
    lease_until: int | None = None
    completed_at: int | None = None
    log: list[str] = field(default_factory=lambda: ["job.queued"])

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    def holds(self, lease: Lease) -> bool:
        """Whether this lease may write the job."""
        return self.status == "processing" and lease.epoch == self.epoch


@dataclass
class Model:
    """All jobs of one account, the order in which their events were written, and the feed."""

    jobs: dict[str, ModelJob] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    unplanned: dict[tuple[str, int], int] = field(default_factory=dict)  # -> the transaction it came with
    transaction: int = 0
    feed: list[tuple[str, int]] = field(default_factory=list)

    def note(self, job: ModelJob, *events: str) -> None:
        """Events are written."""
        for event in events:
            job.log.append(event)
            self.unplanned[job.id, len(job.log)] = self.transaction

    def holder(self, key: str | None, now: int) -> ModelJob | None:
        """Whom a client's key stands for: until 24 h after the job's end, and not beyond its retention."""
        job = self.jobs.get(self.keys.get(key or "", ""))
        if job is None or job.completed_at is None:
            return job
        return job if now < min(job.completed_at + DAY_MS, job.retained_until) else None

    def admit(self, job: ModelJob) -> None:
        """A new one."""
        self.jobs[job.id] = job
        self.unplanned[job.id, 1] = self.transaction
        if job.key is not None:
            self.keys[job.key] = job.id

    def due(self, now: int) -> list[ModelJob]:
        """What may be claimed, in turn; of equal work the first."""
        busy = {job.work_key for job in self.processing()} - {None}
        waiting = [
            job
            for job in self.jobs.values()
            if job.status == "queued"
            and job.run_at <= now
            and (job.deadline_at is None or job.deadline_at > now)
            and job.work_key not in busy
        ]
        waiting.sort(key=lambda job: (-job.priority, job.run_at, job.place))
        firsts: dict[str, ModelJob] = {}
        for job in waiting:
            firsts.setdefault(job.work_key or job.id, job)
        return list(firsts.values())

    def claim(self, job: ModelJob, lease_until: int) -> None:
        """Taken."""
        job.status, job.lease_until = "processing", lease_until
        job.epoch += 1
        self.note(job, "job.started")

    def end(self, job: ModelJob, ending: Ending, now: int) -> None:
        """An attempt ends. What would be tried again is canceled, if that was asked for."""
        again = isinstance(ending, (Retried, Released))
        job.lease_until = None
        if again and not job.cancel_requested:
            self._again(job, ending, now)
        else:
            self.finish(job, "canceled" if again else ENDED_AS[type(ending)], now)

    def _again(self, job: ModelJob, ending: Ending, now: int) -> None:
        job.status, job.run_at = "queued", now
        if isinstance(ending, Retried):
            job.run_at += round(ending.delay_seconds * 1000)
            job.crash_count += ending.crash
            job.retry_count += not ending.crash
        self.note(job, "job.retrying")

    def finish(self, job: ModelJob, status: str, now: int) -> None:
        """The end."""
        job.status, job.completed_at = status, now
        self.note(job, f"job.{status}")

    def cancel(self, job: ModelJob, now: int) -> str:
        """What the client is told."""
        if job.terminal:
            return "already_finished"
        if job.status == "queued":
            self.finish(job, "canceled", now)
            return "canceled"
        job.cancel_requested = True
        return "cancellation_requested"

    def processing(self) -> list[ModelJob]:
        """What runs."""
        return [job for job in self.jobs.values() if job.status == "processing"]

    def lapsed(self, tick: int) -> list[ModelJob]:
        """Leases that have run out."""
        return [job for job in self.jobs.values() if job.lease_until is not None and job.lease_until <= tick]

    def alive(self, tick: int) -> list[ModelJob]:
        """What runs under a lease that has not run out."""
        return [job for job in self.processing() if job not in self.lapsed(tick)]

    def overdue(self, now: int) -> list[ModelJob]:
        """Queued past their deadline."""
        return [
            job
            for job in self.jobs.values()
            if job.status == "queued" and job.deadline_at is not None and job.deadline_at <= now
        ]

    def plan(self, events: Sequence[tuple[str, int]]) -> None:
        """These get their places in the feed, in the order in which they were committed.

        Those of several jobs in one transaction are in no order, those of one job always are.
        """
        came_with = [self.unplanned.pop(event) for event in events]
        assert came_with == sorted(came_with)
        assert not self.unplanned or max(came_with) <= min(self.unplanned.values())
        self.feed += events
        for job_id, _ in events:
            mine = [sequence for each, sequence in self.feed if each == job_id]
            assert mine == list(range(1, len(mine) + 1))

    def counts(self) -> dict[str, int]:
        """Jobs that wait and jobs that run."""
        statuses = [job.status for job in self.jobs.values()]
        found = {status: statuses.count(status) for status in (Status.QUEUED, Status.PROCESSING)}
        return {status: count for status, count in found.items() if count}


def assert_alike(job: Job, expected: ModelJob) -> None:
    """What a reader of the store sees is what the model says."""
    facts = ("status", "epoch", "crash_count", "retry_count", "removed", "priority")
    found = {fact: getattr(job, fact, None) for fact in facts} | {"priority": job.request.priority}
    assert found == {fact: getattr(expected, fact) for fact in facts}
    assert job.sequence == len(expected.log)
    assert (None if job.completed_at is None else to_ms(job.completed_at)) == expected.completed_at
    if job.status == "queued":
        assert to_ms(job.run_at) == expected.run_at
    if job.status == "processing":
        assert job.cancel_requested == expected.cancel_requested


def without_removal(job: Job) -> Any:
    """All that is final about a terminal job."""
    return (job.status, job.epoch, job.sequence, job.completed_at, job.result, job.error, job.usage)
