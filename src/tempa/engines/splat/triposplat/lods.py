"""The further densities of one object: files beside the main ones, with the number in their names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.engines.splat.formats.export import export

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.jobs.ports import MadeFile


def publish(gaussians: Gaussians, count: int, names: Sequence[str], folder: Path) -> tuple[MadeFile, ...]:
    """Write a cloud of `count` Gaussians asked for: `model-65536.ply`, role `gaussian_ply_65536`, and so on.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    made = tuple(_file(gaussians, count, name, folder) for name in names)
    (folder / f"density-{count}").rmdir()
    return made


def _file(gaussians: Gaussians, count: int, name: str, folder: Path) -> MadeFile:
    (apart := folder / f"density-{count}").mkdir(
        exist_ok=True
    )  # by its own name it would replace the main one
    made = export(name, gaussians, apart)
    stem, _, ending = made.name.partition(".")
    file_name = f"{stem}-{count}.{ending}"
    (apart / made.name).replace(folder / file_name)
    return replace(made, name=file_name, role=f"{made.role}_{count}")
