"""An engine whose disk, or something else, fails it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.jobs.ports import Progress


def load() -> None: ...


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    if work["do"] == "fill":
        Path("/dev/full").write_bytes(b"solid")  # the kernel itself says ENOSPC
    raise OSError(work["errno"], os.strerror(work["errno"]))
