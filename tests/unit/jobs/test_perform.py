"""An attempt: the kernel runs, unless equal work of the account has left its result."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.errors import StoreUnavailable, TempaError
from tempa.jobs.model import (
    Beat,
    BeatAnswer,
    Canceled,
    Claimed,
    Completed,
    Ending,
    Failed,
    Job,
    Lease,
    Released,
    Result,
    Retried,
    Status,
    StoredArtifact,
    Usage,
)
from tempa.jobs.perform import Performer
from tempa.jobs.ports import (
    ArtifactStore,
    Broke,
    Engine,
    Host,
    JobStore,
    Made,
    MadeFile,
    Order,
    RunLimits,
)
from tempa.jobs.provide import Provider
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import PATIENCE_SECONDS, Tally, a_job

ID = "cad_00000000000000000000000000"
MADE = Made(
    (MadeFile("model.step", "step", "step", "model/step"),),
    {"volume": 1.0},
    compute_time_ms=12,
    peak_rss_bytes=91_000_000,
)
NEW = StoredArtifact(
    name="model.step",
    role="step",
    file_format="step",
    media_type="model/step",
    size_bytes=5,
    sha256="cd" * 32,
    key=f"{ID}.a1/model.step",
)
OLD = replace(NEW, sha256="ab" * 32, key="cad_old.a3/model.step")
TWIN = a_job(
    id="cad_old",
    status=Status.COMPLETED,
    work_key="k",
    result=Result(artifacts=(OLD,), measurements={"volume": 2.0}),
    usage=Usage(compute_time_ms=99, peak_rss_bytes=1),
)


@dataclass
class OneJobStore:
    """Knows one twin, or is away."""

    twin: Job | None = None
    away: bool = False
    asked: list[Job] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    fenced_off: bool = False
    published: Job | None = None  # what is written of the job by now
    answers: list[BeatAnswer | StoreUnavailable] = field(default_factory=list)  # to beats; then all is well
    beats: list[Beat] = field(default_factory=list)

    async def finished_twin(self, job: Job) -> Job | None:
        self.asked.append(job)
        if self.away:
            raise StoreUnavailable
        return self.twin

    async def beat(self, beats: Sequence[Beat], lease_seconds: float) -> list[BeatAnswer]:
        self.beats += beats
        answer = self.answers.pop(0) if self.answers else BeatAnswer(held=True, cancel_requested=False)
        if isinstance(answer, StoreUnavailable):
            raise answer
        return [answer]

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        assert lease == Lease(ID, 1)
        self.endings.append(ending)
        return not self.fenced_off

    async def job_by_id(self, job_id: str) -> Job | None:
        if self.away:
            raise StoreUnavailable
        return self.published


@dataclass
class Shelf:
    """Files by key. `full`: it takes no more. `sealed`: not even a scratch folder."""

    keys: set[str] = field(default_factory=lambda: {OLD.key})
    full: bool = False
    sealed: bool = False
    deleted: list[str] = field(default_factory=list)
    seen: list[tuple[str, Path]] = field(default_factory=list)

    def scratch(self, name: str) -> Path:
        if self.sealed:
            raise OSError(28, "No space left on device")
        return Path(name)

    async def keep(self, prefix: str, folder: Path, files: Sequence[MadeFile]) -> tuple[StoredArtifact, ...]:
        if self.full:
            raise OSError(28, "No space left on device")
        return tuple(replace(NEW, name=made.name, key=f"{prefix}/{made.name}") for made in files)

    async def copy(
        self, prefix: str, artifacts: Sequence[StoredArtifact]
    ) -> tuple[StoredArtifact, ...] | None:
        if not all(one.key in self.keys for one in artifacts):
            return None
        return tuple(replace(one, key=f"{prefix}/{one.name}") for one in artifacts)

    async def discard(self, folder: Path) -> None: ...

    async def show(self, key: str, source: Path, shown: int) -> int:
        if self.sealed:
            raise OSError(28, "No space left on device")
        self.seen.append((key, source))
        return shown + 1

    async def delete(self, prefix: str) -> None:
        self.deleted.append(prefix)
        if self.sealed:
            raise OSError(5, "Input/output error")


class ShelfWithoutCopies(Shelf):
    """Has no room for a copy."""

    async def copy(
        self, prefix: str, artifacts: Sequence[StoredArtifact]
    ) -> tuple[StoredArtifact, ...] | None:
        raise OSError(28, "No space left on device")


@dataclass
class CountingHost:
    """Makes the same thing each time, or breaks."""

    outcome: Made | Broke = MADE
    runs: int = 0

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        progress("building", 0.5)
        self.runs += 1
        return self.outcome


@dataclass
class PatientHost:
    """Reaches one stage, and is done when it is told to be; notes that it was killed."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    killed: bool = False
    progress: Callable[[str, float | None], None] = lambda stage, fraction: None

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        self.progress = progress
        progress("building", 0.1)
        self.started.set()
        try:
            await self.finish.wait()
        except asyncio.CancelledError:
            self.killed = True
            raise
        return MADE


class EchoEngine:
    name, module, life_cycle = "echo", "nowhere", "fork"
    limits, takes = RunLimits(1.0, 1 << 20), ()


@dataclass
class Giving:
    """Provides inputs, or cannot."""

    fault: TempaError | None = None
    given: list[Path] = field(default_factory=list)

    async def provide(self, job: Job, engine: Engine, folder: Path, progress: object) -> None:
        self.given.append(folder)
        if self.fault is not None:
            raise self.fault


@dataclass
class Bench:
    """A performer and all that it touches."""

    store: OneJobStore = field(default_factory=OneJobStore)
    shelf: Shelf = field(default_factory=Shelf)
    host: CountingHost | PatientHost = field(default_factory=CountingHost)
    provider: Giving = field(default_factory=Giving)
    tally: Tally = field(default_factory=Tally)
    clock: ManualClock = field(default_factory=ManualClock)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    engines: dict[str, Any] = field(default_factory=lambda: {"echo": EchoEngine()})

    def performer(self) -> Performer:
        return Performer(
            store=cast("JobStore", self.store),
            artifacts=cast("ArtifactStore", self.shelf),
            host=cast("Host", self.host),
            provider=cast("Provider", self.provider),
            wake=InProcessWake(self.clock),
            clock=self.clock,
            engines=cast("Mapping[str, Engine]", self.engines),
            meter=self.tally,
            rng=random.Random(1),
            lease_seconds=30.0,
            beat_seconds=5.0,
            max_crash_retries=1,
        )

    async def attempt(self, **job: Any) -> list[Ending]:
        """All that was written of one attempt's ending."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.performer().perform(Claimed(Lease(ID, 1), a_job(id=ID, **job)), self.draining)
        return self.store.endings

    async def perform(self, **job: Any) -> Ending:
        """The one ending of one attempt."""
        (ending,) = await self.attempt(**job)
        return ending


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def host(bench: Bench) -> PatientHost:
    """The bench's host, which takes its time."""
    bench.host = host = PatientHost()
    return host


def runs(bench: Bench) -> int:
    assert isinstance(bench.host, CountingHost)
    return bench.host.runs


async def test_without_a_twin_the_kernel_runs(bench: Bench) -> None:
    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Completed)
    assert (ending.cached, ending.result) == (False, Result(artifacts=(NEW,), measurements={"volume": 1.0}))
    assert ending.usage == Usage(compute_time_ms=12, peak_rss_bytes=91_000_000)
    assert (runs(bench), bench.tally.counted["tempa_jobs_cached_total"]) == (1, 0)


async def test_with_a_twin_its_files_are_copied_and_no_kernel_runs(bench: Bench) -> None:
    bench.store.twin = TWIN

    ending = await bench.perform(work_key="k")

    assert ending == Completed(
        result=Result(artifacts=(replace(OLD, key=f"{ID}.a1/model.step"),), measurements={"volume": 2.0}),
        usage=Usage(),
        cached=True,
    )
    assert [job.id for job in bench.store.asked] == [ID]
    assert runs(bench) == 0
    assert bench.tally.counted == {"tempa_jobs_ended_total": 1, "tempa_jobs_cached_total": 1}


async def test_a_cached_result_that_was_not_published_is_not_counted(bench: Bench) -> None:
    bench.store.twin, bench.store.fenced_off = TWIN, True

    await bench.perform(work_key="k")

    assert bench.tally.counted == {}


async def test_a_job_without_a_work_key_asks_for_no_twin(bench: Bench) -> None:
    bench.store.twin = TWIN

    ending = await bench.perform(work_key=None)

    assert isinstance(ending, Completed)
    assert (ending.cached, runs(bench), bench.store.asked) == (False, 1, [])


@pytest.mark.parametrize("trouble", ["file gone", "disk full", "store away"])
async def test_a_twin_that_cannot_be_had_costs_a_run_and_not_the_job(bench: Bench, trouble: str) -> None:
    bench.store.twin = TWIN
    bench.store.away = trouble == "store away"
    bench.shelf = ShelfWithoutCopies() if trouble == "disk full" else Shelf(keys=set())

    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Completed)
    assert (ending.cached, ending.result.artifacts, runs(bench)) == (False, (NEW,), 1)


async def test_what_was_published_stays(bench: Bench) -> None:
    await bench.perform()

    assert bench.shelf.deleted == []


async def test_what_a_fenced_off_attempt_kept_goes(bench: Bench) -> None:
    """It was taken for lost, its files were deleted then, and it kept them all the same."""
    other = replace(NEW, key=f"{ID}.a12/model.step")
    bench.store.fenced_off = True
    bench.store.published = a_job(id=ID, result=Result(artifacts=(other,), measurements={}))

    await bench.perform()

    assert bench.shelf.deleted == [f"{ID}.a1"]


async def test_what_was_published_by_a_commit_whose_answer_was_lost_stays(bench: Bench) -> None:
    bench.store.fenced_off = True
    bench.store.published = a_job(id=ID, result=Result(artifacts=(NEW,), measurements={}))

    await bench.perform()

    assert bench.shelf.deleted == []


async def test_who_cannot_know_whether_it_was_published_deletes_nothing(bench: Bench) -> None:
    bench.store.fenced_off = bench.store.away = True

    await bench.perform()

    assert bench.shelf.deleted == []


async def test_what_an_attempt_kept_before_it_had_to_stop_goes(bench: Bench, host: PatientHost) -> None:
    bench.draining.set()

    assert isinstance(await bench.perform(), Released)
    assert bench.shelf.deleted == [f"{ID}.a1"]


async def test_a_failure_is_the_jobs_own(bench: Bench) -> None:
    bench.host = CountingHost(Broke(TempaError("FILLET_FAILED"), compute_time_ms=1, peak_rss_bytes=1))

    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Failed)
    assert ending.error.code == "FILLET_FAILED"


@pytest.mark.parametrize("shelf", [Shelf(full=True), Shelf(sealed=True)], ids=["keep", "scratch"])
async def test_a_full_disk_is_no_fault_of_the_job_and_it_is_tried_again(bench: Bench, shelf: Shelf) -> None:
    bench.shelf = shelf

    ending = await bench.perform()

    assert isinstance(ending, Retried)
    assert (ending.error.code, ending.crash) == ("ARTIFACT_STORE_FAILED", False)
    assert ending.error.detail == {"reason": "No space left on device"}


async def test_a_disk_that_stays_full_fails_the_job_in_the_end(bench: Bench) -> None:
    bench.shelf.full = True

    ending = await bench.perform(retry_count=3)

    assert isinstance(ending, Failed)
    assert (ending.error.code, ending.error.retryable) == ("ARTIFACT_STORE_FAILED", True)


async def test_an_engine_that_was_switched_off_while_its_job_waited_has_a_code(bench: Bench) -> None:
    bench.engines.clear()

    ending = await bench.perform()

    assert isinstance(ending, Failed)
    assert (ending.error.code, runs(bench)) == ("ENGINE_UNAVAILABLE", 0)


async def test_a_lost_lease_stops_the_kernel_and_nothing_is_written(bench: Bench, host: PatientHost) -> None:
    bench.store.answers = [BeatAnswer(held=False, cancel_requested=False)]
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    await beat(bench)

    assert await attempt == []
    assert host.killed
    assert bench.tally.counted == {}


async def test_a_lease_that_runs_out_while_the_store_is_away_stops_the_kernel(
    bench: Bench, host: PatientHost
) -> None:
    bench.store.answers = [StoreUnavailable() for _ in range(100)]
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    for _ in range(6):  # a beat every 5 s, a lease of 30 s
        await bench.clock.until_asleep()
        assert not host.killed
        await beat(bench)

    assert await attempt == []
    assert host.killed


async def test_a_store_that_comes_back_in_time_costs_nothing(bench: Bench, host: PatientHost) -> None:
    well = BeatAnswer(held=True, cancel_requested=False)
    away: list[BeatAnswer | StoreUnavailable] = [StoreUnavailable()] * 5
    bench.store.answers = [*away, well] * 3
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    for _ in range(18):
        await beat(bench)
    await bench.clock.until_asleep()
    host.finish.set()

    (ending,) = await attempt
    assert isinstance(ending, Completed)


@pytest.mark.parametrize("answered", [False, True], ids=["with the ending", "with the next beat"])
async def test_stages_that_could_not_be_written_are_written_later(
    bench: Bench, host: PatientHost, *, answered: bool
) -> None:
    bench.store.answers = [StoreUnavailable()]
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    await beat(bench)
    await bench.clock.until_asleep()
    host.progress("meshing", 0.2)
    if answered:
        await beat(bench)
        await bench.clock.until_asleep()
    host.finish.set()

    (ending,) = await attempt
    told = [beat.stages for beat in bench.store.beats[1:]] + [ending.stages]
    assert [stage.name for stages in told for stage in stages] == ["building", "meshing"]
    assert [len(stages) for stages in told] == ([2, 0] if answered else [2])


async def test_progress_within_a_stage_is_no_new_stage(bench: Bench, host: PatientHost) -> None:
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    await beat(bench)
    await bench.clock.until_asleep()
    host.progress("building", 0.7)
    host.finish.set()

    (ending,) = await attempt
    assert [stage.name for stage in bench.store.beats[0].stages] == ["building"]
    assert ending.stages == ()


async def test_a_cancel_kills_the_kernel_with_the_next_beat(bench: Bench, host: PatientHost) -> None:
    bench.store.answers = [BeatAnswer(held=True, cancel_requested=True)]
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    await beat(bench)

    (ending,) = await attempt
    assert isinstance(ending, Canceled)
    assert host.killed


async def test_a_draining_worker_kills_the_kernel_and_hands_the_job_back(
    bench: Bench, host: PatientHost
) -> None:
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()

    bench.draining.set()

    (ending,) = await attempt
    assert isinstance(ending, Released)
    assert host.killed


async def test_a_deadline_that_passes_kills_the_kernel(bench: Bench, host: PatientHost) -> None:
    deadline = bench.clock.now() + timedelta(seconds=3)
    attempt = asyncio.create_task(bench.attempt(deadline_at=deadline))
    await host.started.wait()
    await bench.clock.until_asleep()

    bench.clock.advance(3.0)

    (ending,) = await attempt
    assert isinstance(ending, Failed)
    assert ending.error.code == "DEADLINE_EXCEEDED"
    assert host.killed


async def beat(bench: Bench) -> None:
    """Let time pass until the next beat is due."""
    await bench.clock.until_asleep()
    bench.clock.advance(5.0)


async def test_inputs_lie_there_before_the_kernel_runs() -> None:
    bench = Bench()
    await bench.perform()
    assert bench.provider.given == [Path(f"{ID}.a1")]


async def test_a_job_without_its_inputs_fails_with_their_code_and_runs_nothing() -> None:
    fault = TempaError("SOURCE_FETCH_FAILED", retryable=False)
    bench = Bench(provider=Giving(fault))
    ending = await bench.perform()
    assert isinstance(ending, Failed)
    assert ending.error.code == "SOURCE_FETCH_FAILED"
    assert isinstance(bench.host, CountingHost)
    assert bench.host.runs == 0


async def test_a_picture_of_what_is_made_is_shown_with_each_beat_and_gone_at_the_end(
    bench: Bench, host: PatientHost
) -> None:
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()
    await beat(bench)
    await bench.clock.until_asleep()
    host.finish.set()
    await attempt

    place = f"{ID}.a0/live-preview.png"
    assert bench.shelf.seen == [(place, Path(f"{ID}.a1/live-preview.png"))]
    assert place in bench.shelf.deleted


async def test_a_picture_that_cannot_be_shown_costs_nothing(bench: Bench, host: PatientHost) -> None:
    attempt = asyncio.create_task(bench.attempt())
    await host.started.wait()
    bench.shelf.sealed = True
    await beat(bench)
    await bench.clock.until_asleep()
    bench.shelf.sealed = False
    host.finish.set()

    (ending,) = await attempt
    assert isinstance(ending, Completed)
