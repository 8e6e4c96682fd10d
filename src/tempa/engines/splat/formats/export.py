"""Writing Gaussians as a job's file: written, and read again before it counts as made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.engines.splat.formats.files import write
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.formats.verify import verify
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians


def export(name: str, gaussians: Gaussians, folder: Path) -> MadeFile:
    """Write Gaussians into a folder, in a format of `FORMATS`, and read them back.

    Raises:
        TempaError: EXPORT_FAILED.
        OSError: the disk is full or broken.
    """
    form = FORMATS[name]
    path = folder / form.file_name
    write(name, gaussians, path)
    verify(path, name, gaussians)
    return MadeFile(name=form.file_name, role=form.role, file_format=name, media_type=form.media_type)
