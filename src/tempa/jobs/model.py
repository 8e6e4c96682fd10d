"""Jobs: the state machine as a table, and the values that pass between intake, worker and store."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Status(StrEnum):
    """What a client sees of a job's state."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        """Terminal is final: no transition leaves it."""
        return self in _TERMINAL


_TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED})


class Step(StrEnum):
    """What may happen to a job."""

    CLAIM = "claim"  # a worker took it
    COMPLETE = "complete"  # the fenced publication
    FAIL = "fail"
    RETRY = "retry"  # a retryable error, or a lost lease, with attempts left
    RELEASE = "release"  # a draining worker hands it back, no attempt burnt
    CANCEL = "cancel"


TRANSITIONS: Mapping[tuple[Status, Step], tuple[Status, str]] = {
    (Status.QUEUED, Step.CLAIM): (Status.PROCESSING, "job.started"),
    (Status.QUEUED, Step.CANCEL): (Status.CANCELED, "job.canceled"),
    (Status.QUEUED, Step.FAIL): (Status.FAILED, "job.failed"),  # its deadline passed in the queue
    (Status.PROCESSING, Step.COMPLETE): (Status.COMPLETED, "job.completed"),
    (Status.PROCESSING, Step.FAIL): (Status.FAILED, "job.failed"),
    (Status.PROCESSING, Step.CANCEL): (Status.CANCELED, "job.canceled"),
    (Status.PROCESSING, Step.RETRY): (Status.QUEUED, "job.retrying"),
    (Status.PROCESSING, Step.RELEASE): (Status.QUEUED, "job.retrying"),
}
"""(from, step) -> (to, the event it appends). What is not here cannot happen."""

STATUS_AFTER_EVENT: Mapping[str, Status] = {
    "job.queued": Status.QUEUED,
    **{event: to for to, event in TRANSITIONS.values()},
}
"""The status a job has once an event of this type stands in its log (`job.stage` changes none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """A result file whose bytes are durable. `key` is where, for the artifact store only."""

    name: str
    role: str
    file_format: str
    media_type: str
    size_bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a completed job publishes, in one row, in one transaction."""

    artifacts: tuple[StoredArtifact, ...]
    measurements: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job failed (CONTRACTS section 2, `error`)."""

    code: str
    message: str
    retryable: bool
    hint: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an attempt cost."""

    compute_time_ms: int = 0
    peak_rss_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Request:
    """A validated request, before it is a job. Everything here is decided at the door.

    `work` is the engine's own share, plain JSON with all defaults filled in. `inputs` are what it works on,
    by name: `{"sha256", "file_size_bytes"}` of bytes that lie with the job, or `{"url"}`. `traceparent` (W3C
    Trace Context) travels along and is no part of what is asked.
    """

    engine: str
    engine_version: str
    kind: str
    family: str
    model: str
    lane: str
    work: Mapping[str, Any]
    webhook_url: str | None = None
    webhook_events: tuple[str, ...] = ()
    deadline_seconds: float | None = None
    priority: int = 5
    tags: Mapping[str, str] = field(default_factory=dict)
    gpu_instance_id: str | None = None
    cache: str = "use"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The idempotency key a request is admitted under.

    A client's key binds while its job is not terminal and 24 h beyond; a derived one while the
    job is queued, processing or completed. The two never share a namespace. It does not bind for the
    job `not_for`: that one's result has lost its files.
    """

    route: str
    key: str
    derived: bool
    fingerprint: str
    not_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """All that one admission writes: job, key and first event, in one transaction."""

    id: str
    event_id: str
    account: str
    request: Request
    reservation: Reservation | None
    created_at: datetime
    deadline_at: datetime | None
    retained_until: datetime
    work_key: str | None = None  # the account's jobs that share it do equal work; None: like no other
    queued_max: int | None = None  # how many of the account's may wait or run, with it; None: any number


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as the store has it."""

    id: str
    account: str
    status: Status
    request: Request
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    run_at: datetime
    deadline_at: datetime | None
    retained_until: datetime
    epoch: int  # number of claims: the fencing token of the present attempt
    crash_count: int  # attempts that ended with their worker or kernel dead
    retry_count: int  # attempts that ended in a retryable error
    sequence: int  # number of its last event
    stage: str | None
    fraction: float | None
    cancel_requested: bool
    cached: bool
    result: Result | None
    error: JobError | None
    usage: Usage
    removed: bool = False  # inputs and artifacts were deleted by the client
    work_key: str | None = None


class Tenant(NamedTuple):
    """An account on a GPU instance."""

    account: str
    gpu_instance_id: str


class Tenure(StrEnum):
    """How a tenant stands with the instance."""

    ACTIVE = "active"  # jobs may be bound to it
    HELD = "held"  # no more of them; those that are go on: in the grace, or while it is suspended
    OVER = "over"  # it is not this account's, or not any longer


@dataclass(frozen=True, slots=True)
class PastJob:
    """What a completed job took: from admission, and from its first start."""

    total_seconds: float
    run_seconds: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a job: it holds while the job is processing at this epoch."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job a worker has just taken."""

    lease: Lease
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage the running attempt reached."""

    name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A worker's sign of life for one lease, with what it has seen since the last one."""

    lease: Lease
    stages: tuple[Stage, ...] = ()
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """Whether the lease still holds, and whether the client asked to cancel."""

    held: bool
    cancel_requested: bool


# How an attempt ends. `settle` writes each under the fence: (job, epoch, processing).


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Publish the result. `cached`: it is that of equal work, and no kernel ran."""

    result: Result
    usage: Usage
    stages: tuple[Stage, ...] = ()
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Fail for good."""

    error: JobError
    usage: Usage = field(default_factory=Usage)
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """Queue again after `delay_seconds`. `crash` spends the crash budget, else the retry budget."""

    error: JobError
    delay_seconds: float
    crash: bool
    usage: Usage = field(default_factory=Usage)
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Canceled:
    """End at the client's wish."""

    usage: Usage = field(default_factory=Usage)
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Hand back at shutdown: queued at once, no budget spent."""

    stages: tuple[Stage, ...] = ()


Ending = Completed | Failed | Retried | Canceled | Released

STEP_OF_ENDING: Mapping[type, Step] = {
    Completed: Step.COMPLETE,
    Failed: Step.FAIL,
    Retried: Step.RETRY,
    Canceled: Step.CANCEL,
    Released: Step.RELEASE,
}


class Verdict(StrEnum):
    """What became of a request at admission."""

    ADMITTED = "admitted"
    REPLAYED = "replayed"  # same key, same request: the job that stands
    REUSED = "reused"  # same key, other request: refused


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer of `admit`. `job` is the one that stands under the key."""

    verdict: Verdict
    job: Job


class CancelOutcome(StrEnum):
    """The answer to a cancel."""

    CANCELED = "canceled"
    REQUESTED = "cancellation_requested"
    FINISHED = "already_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """What a list of jobs is narrowed to. All given conditions hold."""

    status: Status | None = None
    engine: str | None = None
    tag: str | None = None  # name:value; both may hold colons, and every way to read it counts
    code: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """An uploaded input."""

    id: str
    account: str
    key: str
    sha256: str
    size_bytes: int
    created_at: datetime
    expires_at: datetime
