"""What the jobs slice asks of the world. Implementations live under `engines/` and `adapters/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tempa.core.errors import Problem, TempaError


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
    def read(self, body: Mapping[str, Any]) -> Reading: ...  # pure; all problems at once
    def describe(self) -> Mapping[str, Any]: ...  # its entry in GET /v1/engines


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

    `load` imports the kernel, once, in the zygote; `run` does one job in a forked child, writes
    its files into `folder` and raises `TempaError` for every failure it can name.
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
