"""An engine with the real kernel loaded that does nothing with it: what is left is the host's cost."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.jobs.ports import Progress


def load() -> None:
    importlib.import_module("OCP.BRepPrimAPI")


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report(files=(), measurements={})
