"""One phase of one system: its process, the word "go", what it found, and the CPU it took."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from bench.queue.peers import ROOT
from bench.queue.probes import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.queue.services import Service

PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Something that takes jobs and runs them. Systems are compared within one `durability` only."""

    name: str
    command: Sequence[str]
    service: Service
    durability: str
    settings: str
    jobs: Mapping[str, int]  # how many make a phase of one or two seconds
    two_processes: bool = True  # one admits, the other works
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a phase is to do."""

    phase: str
    jobs: int
    clients: int = 64
    every_seconds: float = 0.02


@dataclass(frozen=True, slots=True)
class Found:
    """What a phase came to: seconds for all jobs, or the milliseconds that each waited."""

    jobs: int
    seconds: float
    waits_ms: Sequence[float]
    cpu_seconds_per_1000: float  # of the clients and the server together

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds


class Broken(Exception):  # noqa: N818 - it says what is the case
    """A system did not do its phase, and why."""


def measure(system: System, asked: Asked) -> Found:
    """Do one phase in a fresh place."""
    with system.service.fresh() as url:
        if asked.phase == "pickup" and system.two_processes:
            return _measure_two(system, asked, url)
        with _Process(system, asked, url) as one:
            used = _service_cpu(system)
            figures = one.go().result()
            used = _service_cpu(system) - used
    return _found(asked, figures, figures.get("starts"), used + figures["cpu_seconds"])


def _measure_two(system: System, asked: Asked, url: str) -> Found:
    hearing = Asked(phase="hear", jobs=asked.jobs)
    with _Process(system, hearing, url) as worker:
        worker.go()
        with _Process(system, asked, url) as producer:
            used = _service_cpu(system)
            figures = producer.go().result()
            heard = worker.result()
            used = _service_cpu(system) - used
    return _found(asked, figures, heard["starts"], used + figures["cpu_seconds"] + heard["cpu_seconds"])


def _found(asked: Asked, figures: Mapping[str, Any], starts: Sequence[float] | None, cpu: float) -> Found:
    waits = [
        (start - call) * 1000 for call, start in zip(figures.get("calls", ()), starts or (), strict=True)
    ]
    return Found(asked.jobs, figures.get("seconds", 0.0), waits, cpu / asked.jobs * 1000)


def _service_cpu(system: System) -> float:
    return 0.0 if system.service.pid is None else cpu_seconds(system.service.pid)


class _Process:
    """A system's own process, told what to do on its command line."""

    def __init__(self, system: System, asked: Asked, url: str) -> None:
        self._name = f"{system.name}, {asked.phase}"
        self._process = subprocess.Popen(
            [*system.command, json.dumps({**asdict(asked), "url": url})],
            cwd=ROOT,
            env={**os.environ, **(system.environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        try:
            self._said()
        except Broken:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def go(self) -> _Process:
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self

    def result(self) -> dict[str, Any]:
        return self._said()

    def _said(self) -> dict[str, Any]:
        out, err = self._process.stdout, self._process.stderr
        assert out
        assert err
        ready, _, _ = select.select([out], [], [], PATIENCE_SECONDS)
        if not ready:
            raise Broken(f"{self._name}: nothing came within {PATIENCE_SECONDS} s")
        line = out.readline()
        if not line:
            raise Broken(f"{self._name}: {err.read().strip()[-400:]}")
        words: dict[str, Any] = json.loads(line)
        return words


@contextlib.contextmanager
def or_told(what: str) -> Iterator[None]:
    """A system that breaks costs its own row, and says why."""
    try:
        yield
    except Broken as broken:
        print(f"not run: {what}: {broken}", flush=True)
