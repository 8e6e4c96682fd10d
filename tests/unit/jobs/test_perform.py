"""An attempt: the kernel runs, unless equal work of the account has left its result."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.errors import StoreUnavailable, TempaError
from tempa.core.metrics import METRICS
from tempa.jobs.model import (
    Beat,
    BeatAnswer,
    Claimed,
    Completed,
    Ending,
    Failed,
    Job,
    Lease,
    Result,
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
from tempa.testing.clock import ManualClock
from tests.unit.jobs.samples import a_job

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

    async def finished_twin(self, job: Job) -> Job | None:
        self.asked.append(job)
        if self.away:
            raise StoreUnavailable
        return self.twin

    async def beat(self, beats: Sequence[Beat], lease_seconds: float) -> list[BeatAnswer]:
        return [BeatAnswer(held=True, cancel_requested=False) for _ in beats]

    async def settle(self, lease: Lease, ending: Ending) -> bool:
        assert lease == Lease(ID, 1)
        self.endings.append(ending)
        return not self.fenced_off


@dataclass
class Shelf:
    """Files by key. `full`: it takes no more."""

    keys: set[str] = field(default_factory=lambda: {OLD.key})
    full: bool = False

    def scratch(self, name: str) -> Path:
        return Path(name)

    async def keep(self, prefix: str, folder: Path, files: Sequence[MadeFile]) -> tuple[StoredArtifact, ...]:
        return tuple(replace(NEW, name=made.name, key=f"{prefix}/{made.name}") for made in files)

    async def copy(
        self, prefix: str, artifacts: Sequence[StoredArtifact]
    ) -> tuple[StoredArtifact, ...] | None:
        if self.full:
            raise OSError(28, "No space left on device")
        if not all(one.key in self.keys for one in artifacts):
            return None
        return tuple(replace(one, key=f"{prefix}/{one.name}") for one in artifacts)

    async def discard(self, folder: Path) -> None: ...


@dataclass
class CountingHost:
    """Makes the same thing each time, or breaks."""

    outcome: Made | Broke = MADE
    runs: int = 0

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        progress("building", 0.5)
        self.runs += 1
        return self.outcome


class Tally:
    """Counts, and knows the table."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        assert labels.keys() == set(METRICS[name].labels)
        self.counted[name] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class EchoEngine:
    name, module, life_cycle = "echo", "nowhere", "fork"
    limits = RunLimits(1.0, 1 << 20)


@dataclass
class Bench:
    """A performer and all that it touches."""

    store: OneJobStore = field(default_factory=OneJobStore)
    shelf: Shelf = field(default_factory=Shelf)
    host: CountingHost = field(default_factory=CountingHost)
    tally: Tally = field(default_factory=Tally)

    async def perform(self, **job: Any) -> Ending:
        """The one ending of one attempt."""
        clock = ManualClock()
        performer = Performer(
            store=cast("JobStore", self.store),
            artifacts=cast("ArtifactStore", self.shelf),
            host=cast("Host", self.host),
            wake=InProcessWake(clock),
            clock=clock,
            engines=cast("Mapping[str, Engine]", {"echo": EchoEngine()}),
            meter=self.tally,
            rng=random.Random(1),
            lease_seconds=30.0,
            beat_seconds=5.0,
            max_crash_retries=1,
        )
        await performer.perform(Claimed(Lease(ID, 1), a_job(id=ID, **job)), asyncio.Event())
        (ending,) = self.store.endings
        return ending


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_without_a_twin_the_kernel_runs(bench: Bench) -> None:
    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Completed)
    assert (ending.cached, ending.result) == (False, Result(artifacts=(NEW,), measurements={"volume": 1.0}))
    assert ending.usage == Usage(compute_time_ms=12, peak_rss_bytes=91_000_000)
    assert (bench.host.runs, bench.tally.counted["tempa_jobs_cached_total"]) == (1, 0)


async def test_with_a_twin_its_files_are_copied_and_no_kernel_runs(bench: Bench) -> None:
    bench.store.twin = TWIN

    ending = await bench.perform(work_key="k")

    assert ending == Completed(
        result=Result(artifacts=(replace(OLD, key=f"{ID}.a1/model.step"),), measurements={"volume": 2.0}),
        usage=Usage(),
        cached=True,
    )
    assert [job.id for job in bench.store.asked] == [ID]
    assert bench.host.runs == 0
    assert bench.tally.counted == {"tempa_jobs_ended_total": 1, "tempa_jobs_cached_total": 1}


async def test_a_cached_result_that_was_not_published_is_not_counted(bench: Bench) -> None:
    bench.store.twin, bench.store.fenced_off = TWIN, True

    await bench.perform(work_key="k")

    assert bench.tally.counted == {}


async def test_a_job_without_a_work_key_asks_for_no_twin(bench: Bench) -> None:
    bench.store.twin = TWIN

    ending = await bench.perform(work_key=None)

    assert isinstance(ending, Completed)
    assert (ending.cached, bench.host.runs, bench.store.asked) == (False, 1, [])


@pytest.mark.parametrize("trouble", ["file gone", "disk full", "store away"])
async def test_a_twin_that_cannot_be_had_costs_a_run_and_not_the_job(bench: Bench, trouble: str) -> None:
    bench.store.twin = TWIN
    bench.store.away = trouble == "store away"
    bench.shelf = Shelf(keys=set() if trouble == "file gone" else {OLD.key}, full=trouble == "disk full")

    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Completed)
    assert (ending.cached, ending.result.artifacts, bench.host.runs) == (False, (NEW,), 1)


async def test_a_failure_is_the_jobs_own(bench: Bench) -> None:
    bench.host.outcome = Broke(TempaError("FILLET_FAILED"), compute_time_ms=1, peak_rss_bytes=1)

    ending = await bench.perform(work_key="k")

    assert isinstance(ending, Failed)
    assert ending.error.code == "FILLET_FAILED"
