"""An engine that does what its parameters say: for tests of what a server does around an engine.

It enters by the public door: put a `*.dist-info` folder with the entry point
`trial = tempa.testing.trial_engine:TrialEngine` (group `tempa.engines`) on the server's path.
"""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tempa.core.errors import CODES, Problem, TempaError
from tempa.core.limits import DEFAULT_LIMITS
from tempa.jobs.ports import MadeFile, Reading, Report, RunLimits, Takes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.limits import Limits
    from tempa.jobs.ports import Progress

DOINGS = ("finish", "hang", "crash", "eat", "raise", "break", "wait")


@dataclass(frozen=True, kw_only=True)
class TrialEngine:
    """`parameters`: `do` (one of `DOINGS`), `code` for `raise`, `path` for `wait`, `n` to tell jobs apart."""

    timeout_seconds: float = 2.0
    memory_bytes: int = 256 << 20
    name: str = "trial"
    version: str = "1"
    kind: str = "cad"
    family: str = "cad_generation"
    model: str = "trial"
    lane: str = "cpu"
    deterministic: bool = True
    life_cycle: Literal["fork"] = "fork"
    module: str = "tempa.testing.trial_engine"
    takes: tuple[Takes, ...] = ()

    @property
    def limits(self) -> RunLimits:
        """What one attempt may use."""
        return RunLimits(self.timeout_seconds, self.memory_bytes)

    def look(self, name: str, path: Path, parameters: object, limits: Limits) -> Problem | None:
        """It takes no input."""
        raise NotImplementedError

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """Any JSON in `parameters`, as long as `do` is known."""
        del limits
        parameters = body.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("do") not in DOINGS:
            return Reading(None, (Problem("/parameters/do", f"Must be one of {', '.join(DOINGS)}."),))
        if parameters["do"] == "raise" and parameters.get("code") not in CODES:
            return Reading(None, (Problem("/parameters/code", "Must be a job code."),))
        return Reading({"n": 0, "code": None, "path": None, **parameters})

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        """Its entry in the list of engines."""
        del limits
        return {"name": self.name, "version": self.version}


def load() -> None:
    """Nothing to load."""


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Do what the parameters say."""
    progress("trying", 0.5)
    _DO[work["do"]](work, progress)
    (folder / "trial.txt").write_text(f"trial {work['n']}\n", encoding="utf-8")
    return Report((MadeFile("trial.txt", "text", "txt", "text/plain"),), {"n": work["n"]})


def _finish(work: Mapping[str, Any], progress: Progress) -> None:
    del work, progress


def _hang(work: Mapping[str, Any], progress: Progress) -> None:
    """Loop inside C with the interpreter's lock held, as a kernel call does."""
    del work, progress
    ctypes.PyDLL(None).pause()


def _crash(work: Mapping[str, Any], progress: Progress) -> None:
    del work
    progress("dying")
    os.kill(os.getpid(), signal.SIGSEGV)


def _eat(work: Mapping[str, Any], progress: Progress) -> None:
    """Fill memory step by step; the stage `crossing` is told when the next steps pass the limit."""
    del work
    eaten: list[bytes] = []
    step, told = 4 << 20, False
    while True:
        if not told and len(eaten) * step > _EATEN_BEFORE_CROSSING_BYTES:
            progress("crossing")
            told = True
        eaten.append(b"x" * step)


_EATEN_BEFORE_CROSSING_BYTES = 200 << 20


def _raise(work: Mapping[str, Any], progress: Progress) -> None:
    del progress
    raise TempaError(work["code"])


def _break(work: Mapping[str, Any], progress: Progress) -> None:
    del work, progress
    raise ValueError("an engine's own fault, with a secret in its words")


def _wait(work: Mapping[str, Any], progress: Progress) -> None:
    """Wait until somebody opens the named pipe `path` for writing."""
    del progress
    Path(work["path"]).read_bytes()


_DO = {
    "finish": _finish,
    "hang": _hang,
    "crash": _crash,
    "eat": _eat,
    "raise": _raise,
    "break": _break,
    "wait": _wait,
}
