"""A runner with the kernel loaded that does nothing: what a fork and a reap cost by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.engines.solid import opencascade
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.jobs.ports import Progress


def load() -> None:
    """Load what the real engine loads."""
    opencascade.load()


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Do nothing."""
    del work, folder, progress
    return Report((), {})
