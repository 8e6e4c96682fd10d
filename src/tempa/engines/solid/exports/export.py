"""Writing a part in any format. Every file is opened again before it counts as made."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tempa.core.errors import TempaError
from tempa.engines.solid.exports import brep, glb, step, stl, threemf
from tempa.engines.solid.formats import FORMATS
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from OCP.TopoDS import TopoDS_Shape

    from tempa.engines.solid.exports.mesh import Mesh
    from tempa.engines.solid.reference import Reference


@dataclass(frozen=True, slots=True)
class Part:
    """What is written: an accepted solid, and its mesh if a format needs one.

    When it is read back it has the volume of `reference`, as nearly as the format's digits allow.
    """

    solid: TopoDS_Shape
    reference: Reference
    mesh: Mesh | None


Export: TypeAlias = "Callable[[Part, Path], None]"


def _of_solid(
    write: Callable[[TopoDS_Shape, Path], None],
    verify: Callable[..., None],
    spacing: Callable[[float], float],
) -> Export:
    def export(part: Part, path: Path) -> None:
        write(part.solid, path)
        reference = part.reference
        verify(path, volume=reference.volume, allowance=reference.allowance_in(spacing))

    return export


def _of_mesh(write: Callable[[Mesh, Path], None], verify: Callable[[Path, Mesh], None]) -> Export:
    def export(part: Part, path: Path) -> None:
        assert part.mesh is not None
        write(part.mesh, path)
        verify(path, part.mesh)

    return export


_PROBE_BYTES = 1 << 20  # what is left beside a file that was cut short may still take a few blocks

_EXPORTS: Mapping[str, Export] = {
    "step": _of_solid(step.write, step.verify, math.ulp),
    "brep": _of_solid(brep.write, brep.verify, brep.spacing),
    "stl": _of_mesh(stl.write, stl.verify),
    "glb": _of_mesh(glb.write, glb.verify),
    "3mf": _of_mesh(threemf.write, threemf.verify),
}


def need_mesh(names: Iterable[str]) -> bool:
    """Does any of these formats hold triangles?"""
    return any(FORMATS[name].is_mesh for name in names)


def export(name: str, part: Part, folder: Path) -> MadeFile:
    """Write a part into a folder, in a format of `FORMATS`, and read it back.

    Raises:
        TempaError: EXPORT_FAILED.
        OSError: the disk is full or broken, which is no statement about the part.
    """
    form = FORMATS[name]
    try:
        _EXPORTS[name](part, folder / form.file_name)
    except TempaError:
        _probe(folder)
        raise
    return MadeFile(name=form.file_name, role=name, file_format=name, media_type=form.media_type)


def _probe(folder: Path) -> None:
    """Write something of our own: the kernel does not tell why it could not.

    Raises:
        OSError: as the disk says it.
    """
    path = folder / "probe"
    try:
        with path.open("xb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())  # many file systems find room only now
    finally:
        path.unlink(missing_ok=True)
