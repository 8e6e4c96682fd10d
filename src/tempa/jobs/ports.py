"""What the jobs slice asks of the world. Implementations live under `engines/` and `adapters/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from tempa.core.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from tempa.core.errors import Problem, Refusal, TempaError
    from tempa.core.events import Event
    from tempa.core.limits import Limits
    from tempa.jobs.model import (
        Admission,
        Beat,
        BeatAnswer,
        CancelOutcome,
        Claimed,
        Ending,
        Job,
        JobError,
        JobFilter,
        Lease,
        NewJob,
        PastJob,
        StoredArtifact,
        StoredFile,
        Tenant,
        Tenure,
    )


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one attempt may use before it is killed."""

    timeout_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A request body as an engine read it: the work to do, or everything that is wrong with it.

    `work` is plain JSON with every default filled in, so that its canonical form is the
    fingerprint of the work.
    """

    work: Mapping[str, Any] | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Takes:
    """An input of an engine's: bytes, or a URL to fetch them from.

    A request gives it in the fields `<name>_url`, `<name>_base64` or `<name>_artifact`, or as a form's file.
    """

    name: str  # "image"
    size_bytes_max: Callable[[Limits], int]
    media_types: tuple[str, ...]  # what a fetched one may be declared as; its content decides
    required: bool = True
    too_large: str | None = None  # the code of one that is too large; None: the body is (413)


class Engine(Protocol):
    """What an engine is. Importing it loads no kernel; how it runs lives in `module`."""

    @property
    def name(self) -> str: ...  # public name, "opencascade-brep"
    @property
    def version(self) -> str: ...  # changes whenever the same request may give other bytes
    @property
    def kind(self) -> str: ...  # prefix of job ids: "cad", "splat", "conv", "insp"
    @property
    def family(self) -> str: ...  # webhook family: "cad_generation", ...
    @property
    def model(self) -> str: ...  # what webhooks call the model
    @property
    def lane(self) -> str: ...  # resource class that runs it: "cpu", "gpu"
    @property
    def deterministic(self) -> bool: ...  # same work, same bytes
    @property
    def life_cycle(self) -> Literal["fork", "spawn", "resident"]: ...
    @property
    def module(self) -> str: ...  # dotted name of the `Runner` module
    @property
    def limits(self) -> RunLimits: ...
    @property
    def takes(self) -> tuple[Takes, ...]: ...  # its inputs; `read` does not see them
    def look(
        self, name: str, path: Path, parameters: object, limits: Limits
    ) -> Problem | None: ...  # what is wrong with an input, as far as its first bytes show; may block
    def read(self, body: Mapping[str, Any], limits: Limits) -> Reading: ...  # pure; all problems at once
    def describe(
        self, limits: Limits = DEFAULT_LIMITS
    ) -> Mapping[str, Any]: ...  # its entry in GET /v1/engines, with the limits in force


@runtime_checkable
class Housed(Protocol):
    """What an engine has too that runs in a process of its own, which outlives a job: life cycle *resident*.

    One that cannot run here is not offered; `unfit` says why. It may look at files and run the
    interpreter once, so it takes seconds.
    """

    @property
    def python(self) -> str | None: ...  # the interpreter that has its packages; None: the server's
    @property
    def options(self) -> Mapping[str, Any]: ...  # the operator's settings for it, plain JSON
    def unfit(self) -> TempaError | None: ...  # why it cannot run here; None: it can


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file an engine wrote into its folder."""

    name: str
    role: str
    file_format: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Report:
    """What an engine's `run` returns in the child process."""

    files: tuple[MadeFile, ...]
    measurements: Mapping[str, Any]


class Progress(Protocol):
    """Called by an engine as it works: a stage name, and how far it is (0 to 1) if it knows."""

    def __call__(self, stage: str, fraction: float | None = None) -> None: ...


class Runner(Protocol):
    """How an engine runs: the functions its `module` has. Called in child processes only.

    `load` imports the kernel, once, in the zygote; `run` does one job in a forked child, finds its inputs
    as `folder / "inputs" / <name>`, writes its files into `folder` and raises `TempaError` for every failure
    it can name. A module may have
    `rehearse()` too: a run of milliseconds that a child does while it waits for its task, so that what a
    first run touches is in place. It must leave nothing behind that could change a file's bytes.
    In the life cycle *resident* one process calls `load` once and `run` for one job after the other; a module
    may have `configure(options)` there, which is called before `load`.
    """

    def load(self) -> None: ...
    def run(self, work: Mapping[str, Any], folder: Path, progress: Progress) -> Report: ...


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt for the host to run."""

    engine: str
    module: str
    life_cycle: Literal["fork", "spawn", "resident"]
    work: Mapping[str, Any]
    folder: Path
    limits: RunLimits
    python: str | None = None  # of a resident engine: its own interpreter; None: the server's
    options: Mapping[str, Any] = field(default_factory=dict)  # of a resident engine: the operator's


@dataclass(frozen=True, slots=True)
class Made:
    """The attempt ended well: its files lie in the order's folder."""

    files: tuple[MadeFile, ...]
    measurements: Mapping[str, Any]
    compute_time_ms: int
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Broke:
    """The attempt failed with a code: raised by the engine, or given by the host that killed it."""

    error: TempaError
    compute_time_ms: int
    peak_rss_bytes: int


class Host(Protocol):
    """Runs attempts in killable child processes.

    Cancelling the task that awaits `run` kills the attempt's whole process group before the
    cancellation goes on. `run` itself never raises for anything a kernel can do.
    """

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke: ...
    async def close(self) -> None: ...


Place = tuple[int, int]
"""Where a pass over the jobs past their retention goes on. It means something to the store alone."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """One slice of a pass: how many jobs went, and where it goes on (None: there are no more)."""

    jobs: int
    further: Place | None


class StandBy(Protocol):
    """A worker in the store's own process that can be handed jobs. All calls come from its event loop."""

    @property
    def worker_id(self) -> str: ...
    @property
    def lanes(self) -> Sequence[str]: ...
    @property
    def lease_seconds(self) -> float: ...
    def reserve(self, lane: str) -> bool: ...  # a free slot is kept for a job of this lane, until `take`
    def take(self, claimed: Sequence[Claimed]) -> None: ...  # for the kept slot; empty: it is free again


class JobStore(Protocol):
    """Durable jobs. Each command is one whole transaction, its events included.

    A command returns after its commit is on disk, and has then rung the topics of what changed.
    A store that cannot be reached or written raises `StoreUnavailable` and has done nothing.

    Of an account's jobs with the same `work_key` at most one is processing: `claim` passes over the
    others until that one has ended, however it ended.
    """

    async def admit(self, new: NewJob) -> Admission: ...  # raises AccountFull, with nothing written
    async def claim(
        self, worker: str, lanes: Sequence[str], limit: int, lease_seconds: float
    ) -> list[Claimed]: ...
    def stand_by(
        self, worker: StandBy
    ) -> AbstractContextManager[None]: ...  # while inside, the store may hand it what it admits
    async def next_delayed(
        self, lanes: Sequence[str]
    ) -> float | None: ...  # seconds until the first job that waits for its retry; None: none does
    async def beat(self, beats: Sequence[Beat], lease_seconds: float) -> list[BeatAnswer]: ...
    async def settle(self, lease: Lease, ending: Ending) -> bool: ...  # False: fenced off, nothing written
    async def expired(self, limit: int) -> list[Claimed]: ...  # leases that have run out
    async def take_over(self, lease: Lease, ending: Ending) -> bool: ...  # settle, if still expired
    async def void_leases(self) -> int: ...  # at start: every lease of the dead instance is expired
    async def overdue(self, limit: int) -> list[Job]: ...  # queued past their deadline
    async def fail_queued(self, job_id: str, error: JobError) -> bool: ...
    async def next_tenant(
        self, after: Tenant | None
    ) -> Tenant | None: ...  # of those with unfinished jobs, in an order of the store's own
    async def bound_jobs(self, tenant: Tenant, limit: int) -> list[Job]: ...  # unfinished ones

    async def cancel(self, account: str, job_id: str) -> tuple[CancelOutcome, Job] | None: ...
    async def job(self, account: str, job_id: str) -> Job | None: ...
    async def job_by_id(self, job_id: str) -> Job | None: ...  # for links and tokens: they name no account
    async def jobs(
        self, account: str, narrow: JobFilter, limit: int, before: str | None
    ) -> list[Job]: ...  # newest first; `before` is the id to go on from
    async def queue_position(self, job: Job) -> int: ...  # of its account's in its lane, how many go first
    async def past_jobs(
        self, engine: str, within_seconds: float, limit: int
    ) -> list[PastJob]: ...  # the latest that ran and were completed
    async def finished_twin(
        self, job: Job
    ) -> Job | None: ...  # the newest completed job of its account and work_key that still has its files
    async def job_events(self, job_id: str, after: int, limit: int) -> list[Event]: ...
    async def feed(self, account: str, after: int, limit: int) -> list[Event]: ...
    async def last_position(self) -> int: ...  # given to any account's event; 0: none
    async def mark_removed(self, account: str, job_id: str) -> bool: ...  # False: not terminal
    async def lapsed(self, limit: int) -> list[Job]: ...  # past retained_until, artifacts not yet removed
    async def prune(
        self, kept_seconds: float, after: Place | None, limit: int
    ) -> Pruned: ...  # looks at `limit` removed jobs that long past retained_until; deletes those that may go
    async def gone_at(self, account: str, job_id: str) -> datetime | None: ...  # when a job was pruned
    async def forget_gone(self, kept_seconds: float, limit: int) -> int: ...  # tombstones older than that
    async def forget_days(self, limit: int) -> int: ...  # accounts' compute of before yesterday; how many
    async def counts(self) -> Mapping[tuple[str, str], int]: ...  # (status, lane) -> jobs
    async def oldest_queued(self, lane: str) -> datetime | None: ...  # when the longest waiting was admitted

    async def add_file(self, stored: StoredFile) -> None: ...
    async def file(self, account: str, file_id: str) -> StoredFile | None: ...
    async def lapsed_files(self, limit: int) -> list[StoredFile]: ...
    async def forget_file(self, file_id: str) -> None: ...
    async def orphans(
        self, owners: Sequence[str]
    ) -> list[str]: ...  # of these jobs and uploads: removed jobs, and uploads without a record
    async def unknown_jobs(self, ids: Sequence[str]) -> list[str]: ...  # of these, those without a row


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Bytes the artifact store holds durably."""

    key: str
    size_bytes: int
    sha256: str


class ArtifactStore(Protocol):
    """Result and input files. What is acknowledged here is on disk or in the bucket."""

    def scratch(self, name: str) -> Path: ...  # a new empty folder for one attempt, near the store
    async def keep(
        self, prefix: str, folder: Path, files: Sequence[MadeFile]
    ) -> tuple[StoredArtifact, ...]: ...  # moves a scratch folder in whole; then everything is durable
    async def copy(
        self, prefix: str, artifacts: Sequence[StoredArtifact]
    ) -> tuple[StoredArtifact, ...] | None: ...  # durable, and apart from the originals; None: one is gone
    async def discard(self, folder: Path) -> None: ...  # a scratch folder that was not kept
    async def receive(
        self, key: str, chunks: AsyncIterator[bytes], size_bytes_max: int
    ) -> StoredObject: ...  # raises Refusal("body-too-large")
    async def path(self, key: str) -> Path | None: ...  # a local file with these bytes; None: gone
    async def lend(self, key: str, target: Path) -> bool: ...  # a copy, for an attempt to read; False: gone
    async def show(
        self, key: str, source: Path, shown: int
    ) -> int: ...  # a copy that nobody relies on, if the file is another than when this said `shown`; OSError
    async def delete(self, prefix: str) -> None: ...  # what is gone is fine; OSError if something stays
    async def aged(
        self, age_seconds: float, after: str, limit: int
    ) -> list[str]: ...  # prefixes written longer ago, in an order of its own, from the one behind `after`


class Allowance(Protocol):
    """Which account may use which GPU instance. Answered by what rents them out."""

    async def tenure(self, tenant: Tenant) -> Tenure: ...
    async def refusal(self, tenant: Tenant) -> Refusal: ...  # why no job may be bound: what to do about it


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was fetched by URL."""

    size_bytes: int
    sha256: str
    media_type: str | None  # as its server declared it


class Fetch(Protocol):
    """Brings in what a request names by URL, from addresses that may be called."""

    async def fetch(
        self,
        url: str,
        target: Path,
        *,
        size_bytes_max: int,
        timeout_seconds: float,
        media_types: Sequence[str],
    ) -> Fetched | None: ...  # None: it has more bytes; raises TempaError("SOURCE_FETCH_FAILED"), OSError
