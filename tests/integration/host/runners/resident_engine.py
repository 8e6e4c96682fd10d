"""A resident engine that does what `work["do"]` names. Never imported by the tests."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.jobs.ports import MadeFile, Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.jobs.ports import Progress

_loads: list[dict[str, Any]] = []
_options: dict[str, Any] = {}
_MIB = 1 << 20


def configure(options: Mapping[str, Any]) -> None:
    assert not _loads, "configured after the load"
    _options.update(options)


def load() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # as every model library does
    if "code" in _options:
        raise TempaError(_options["code"], "The model's files are not the pinned ones.")
    if "pipe" in _options:
        Path(_options["pipe"]).read_bytes()
    _loads.append(_options)


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    progress(f"begun {os.getpid()}")
    act = _ACTS[work["do"]]
    act(work, progress)
    (folder / "told.txt").write_text("told", encoding="utf-8")
    files = (MadeFile("told.txt", "text", "txt", "text/plain"),)
    return Report(
        files, {"pid": os.getpid(), "loads": len(_loads), "options": _options, "cwd": str(Path.cwd())}
    )


def _tell(work: Mapping[str, Any], progress: Progress) -> None:
    print(f"said {work['n']}")  # noqa: T201 - what an attempt says must not be told of the next


def _wait(work: Mapping[str, Any], progress: Progress) -> None:
    Path(work["pipe"]).read_bytes()


def _raise(work: Mapping[str, Any], progress: Progress) -> None:
    raise TempaError(work["code"], retryable=work["retryable"], detail={"peak_bytes": 7})


def _break(work: Mapping[str, Any], progress: Progress) -> None:
    raise ValueError("a fault")


def _fall(work: Mapping[str, Any], progress: Progress) -> None:
    os.write(1, f"last words of {work['n']}".encode())
    ctypes.string_at(0)


def _hold(work: Mapping[str, Any], progress: Progress) -> None:
    ctypes.PyDLL(None).pause()  # with the interpreter's lock, as a kernel call does


def _eat(work: Mapping[str, Any], progress: Progress) -> None:
    eaten = []
    while True:
        eaten.append(bytearray(b"x" * (4 * _MIB)))


def _swell(work: Mapping[str, Any], progress: Progress) -> None:
    swollen = bytearray(b"x" * (work["mib"] * _MIB))
    progress("swollen")
    del swollen


_ACTS: dict[str, Any] = {
    "tell": _tell,
    "wait": _wait,
    "raise": _raise,
    "break": _break,
    "fall": _fall,
    "hold": _hold,
    "eat": _eat,
    "swell": _swell,
}
