"""An engine whose rehearsal fails, and whose runs tell whether there was one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.jobs.ports import Progress

_rehearsed = False


def load() -> None:
    pass


def rehearse() -> None:
    global _rehearsed  # noqa: PLW0603 - what a rehearsal leaves behind is what the test looks for
    _rehearsed = True
    raise RuntimeError("not today")


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    del work, folder, progress
    return Report(files=(), measurements={"rehearsed": _rehearsed})
