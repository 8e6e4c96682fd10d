"""One phase of one system: its process, the word "go", what it found, and the CPU it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bench.probes import cpu_seconds
from bench.process import Process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.queue.services import Service


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


def measure(system: System, asked: Asked) -> Found:
    """Do one phase in a fresh place."""
    with system.service.fresh() as url:
        if asked.phase == "pickup" and system.two_processes:
            return _measure_two(system, asked, url)
        with _process(system, asked, url) as one:
            used = _service_cpu(system)
            figures = one.go().result()
            used = _service_cpu(system) - used
    return _found(asked, figures, figures.get("starts"), used + figures["cpu_seconds"])


def _measure_two(system: System, asked: Asked, url: str) -> Found:
    hearing = Asked(phase="hear", jobs=asked.jobs)
    with _process(system, hearing, url) as worker:
        worker.go()
        with _process(system, asked, url) as producer:
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


def _process(system: System, asked: Asked, url: str) -> Process:
    options = {**asdict(asked), "url": url}
    return Process(f"{system.name}, {asked.phase}", system.command, options, system.environment)
