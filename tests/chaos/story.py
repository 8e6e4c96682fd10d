"""One directory, many crashes: a server dies at one place after another, and is judged when all is quiet."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx2

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.jobs.inputs import is_prefix
from tempa.testing.history import Bytes, FeedLine, History, Kept, Line, Published
from tempa.testing.invariants import Fault, faults
from tests.chaos.client import Client, Gate, sha256
from tests.chaos.house import House
from tests.chaos.steps import step_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.jobs.model import Job
    from tempa.testing.receiver import Receiver

SLOTS = 3  # of a process
_PLUGINS = Path(__file__).parent.parent / "plugins"
ENVIRONMENT = {
    # Beside what is there: a mutant's server must run the mutant.
    "PYTHONPATH": os.pathsep.join([str(_PLUGINS), *filter(None, [os.environ.get("PYTHONPATH")])]),
    "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "120",
    "TEMPA_JOBS__LEASE_SECONDS": "2",
    "TEMPA_JOBS__BEAT_SECONDS": "0.2",
    "TEMPA_JOBS__MAX_CRASH_RETRIES": "10",  # a job may be hit by several of these crashes
    "TEMPA_WORKER__SLOTS": str(SLOTS),
    "TEMPA_WEBHOOKS__BACKOFF_BASE_SECONDS": "0.1",
    "TEMPA_WEBHOOKS__TIMEOUT_SECONDS": "2",
}
PATIENCE_SECONDS = 60.0
_ROUND_SECONDS = 0.3


@dataclass
class Story:
    """A server in `folder`, its clients, and what they saw."""

    folder: Path
    receiver: Receiver
    store_url: str | None = None
    rng: random.Random = field(default_factory=lambda: random.Random(20261130))
    number: int = 0
    _gates: list[Gate] = field(default_factory=list)
    _gate_numbers: Iterator[int] = field(default_factory=itertools.count)
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self.house = House(self.folder, ENVIRONMENT, self.store_url)
        self.history = History(self.folder / "history.jsonl")
        self.client = Client(self.house, self.receiver, self.history)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open_gates()
        self.house.__exit__()

    def crash(self, label: str, passage: int = 1) -> None:
        """Let it die at this passage of this label. Asserts that it does, by its own SIGKILL."""
        step = step_of(label)
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        if step.before is not None:
            step.before(self)
        serves = self.house.start(f"{label}:{passage}")
        self._open_gates()
        while serves and not self.house.wait_for_death(_ROUND_SECONDS):
            self.check_patience(label)
            with contextlib.suppress(httpx2.HTTPError):  # lost with the server: asked again later
                step.stir(self)
        self._open_gates()  # else the jobs of this step hold all slots of the next

    def check_patience(self, what: str = "it") -> None:
        """Raises AssertionError when it has taken too long."""
        assert time.monotonic() < self._deadline, f"{what} did not come within {PATIENCE_SECONDS} s"

    def key(self) -> str:
        """A new one; `number` is its."""
        self.number += 1
        return f"key-{self.number}"

    def used_key(self) -> str | None:
        """One that was asked with before, answered or not."""
        return self.rng.choice(sorted(self.client.asked)) if self.client.asked else None

    def hold(self) -> str:
        """A job that runs until this step is over. The same one all through the step, at first asked for."""
        (job_id,) = self._hold(1)
        return job_id

    def hold_all(self) -> list[str]:
        """As many such jobs as there are slots."""
        return self._hold(SLOTS * max(1, len(self.house.processes) - 1))

    def fill(self) -> None:
        """Such jobs on all slots."""
        for job_id in self.hold_all():
            self.client.wait_past(job_id, "queued")

    def _hold(self, count: int) -> list[str]:
        if not self._gates:
            self._gates.append(Gate(self.folder / f"gate-{next(self._gate_numbers)}"))
        gate = self._gates[0]
        keys = [f"{gate.path.name}-{n}" for n in range(count)]
        parameters = [{"do": "wait", "path": str(gate.path), "n": n} for n in range(count)]
        return [
            self.client.ask(key, self.client.body(wanted, priority=9))
            for key, wanted in zip(keys, parameters, strict=True)
        ]

    def _open_gates(self) -> None:
        for gate in self._gates:
            gate.open()
        self._gates.clear()

    def finish(self) -> list[Fault]:
        """Start it once more, wait until all is quiet, look at everything; what is wrong."""
        self._deadline = time.monotonic() + 3 * PATIENCE_SECONDS
        self.house.start()
        self._open_gates()
        self.client.ask_again()
        jobs = sorted(set(self.client.tickets.values()))
        for job_id in jobs:
            self.client.wait_for_end(job_id)
            self.client.read_log(job_id)
        self._wait_for_quiet()
        for job_id in jobs:
            self.client.look(job_id)
        assert self.house.stop() == 0
        self.client.read_hooks()
        asyncio.run(self._read_store(jobs))
        return faults(self.history)

    def _wait_for_quiet(self) -> None:
        """Every log is in the feed, and every webhook at its end."""
        while self._last_lines() - self._fed():
            self.check_patience("an event in the feed")
            self.client.read_feed()
        while self.client.deliveries_under_way():
            self.check_patience("the end of a delivery")

    def _last_lines(self) -> set[tuple[str, int]]:
        last: dict[str, int] = {}
        for seen in self.history:
            if isinstance(seen, Line):
                last[seen.job_id] = max(seen.sequence, last.get(seen.job_id, 0))
        return set(last.items())

    def _fed(self) -> set[tuple[str, int]]:
        return {(seen.job_id, seen.sequence) for seen in self.history if isinstance(seen, FeedLine)}

    async def _read_store(self, jobs: list[str]) -> None:
        """What the rows name, and what lies there."""
        wake = InProcessWake()
        store: SqliteStore | PostgresStore
        if self.store_url is None:
            path = self.house.data_dir / "tempa.db"
            store = await SqliteStore.open(path, clock=SystemClock(), wake=wake)
        else:
            store = await PostgresStore.open(Address(self.store_url), wake=wake)
        try:
            for job_id in jobs:
                job = await store.job_by_id(job_id)
                assert job is not None
                self._read_files(job)
        finally:
            await store.close()
        self._list_kept()

    def _read_files(self, job: Job) -> None:
        if job.result is None:
            return
        for artifact in job.result.artifacts:
            owner, _, epoch = artifact.key.partition("/")[0].partition(".a")
            assert owner == job.id, f"{job.id} names a file of {owner}"
            self.history.append(
                Published(job_id=job.id, name=artifact.name, epoch=int(epoch), sha256=artifact.sha256)
            )
            for path in self._artifacts.glob(f"*/{artifact.key}"):
                self.history.append(Bytes(job_id=job.id, name=artifact.name, sha256=sha256(path)))

    def _list_kept(self) -> None:
        for path in self._artifacts.glob("*/*.a*"):
            owner, _, epoch = path.name.partition(".a")
            if not is_prefix(path.name):  # what the job was given: nobody had to claim it for that
                self.history.append(Kept(job_id=owner, epoch=int(epoch)))

    @property
    def _artifacts(self) -> Path:
        return self.house.data_dir / "artifacts"
