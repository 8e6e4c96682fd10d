"""The formats a solid can be written in. Every file is opened again before it counts as made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tempa.engines.solid.exports import brep, glb, step, stl, threemf
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from OCP.TopoDS import TopoDS_Shape

    from tempa.engines.solid.exports.mesh import Mesh


@dataclass(frozen=True, slots=True)
class Part:
    """What is written: an accepted solid, its volume in mm3, and its mesh if a format needs one."""

    solid: TopoDS_Shape
    volume: float
    mesh: Mesh | None


Export: TypeAlias = "Callable[[Part, Path], None]"


def _of_solid(write: Callable[[TopoDS_Shape, Path], None], verify: Callable[..., None]) -> Export:
    def export(part: Part, path: Path) -> None:
        write(part.solid, path)
        verify(path, volume=part.volume)

    return export


def _of_mesh(write: Callable[[Mesh, Path], None], verify: Callable[[Path, Mesh], None]) -> Export:
    def export(part: Part, path: Path) -> None:
        assert part.mesh is not None
        write(part.mesh, path)
        verify(path, part.mesh)

    return export


_EXPORTS: Mapping[str, tuple[str, Export]] = {
    "step": ("model/step", _of_solid(step.write, step.verify)),
    "brep": ("application/x-brep", _of_solid(brep.write, brep.verify)),
    "stl": ("model/stl", _of_mesh(stl.write, stl.verify)),
    "glb": ("model/gltf-binary", _of_mesh(glb.write, glb.verify)),
    "3mf": ("model/3mf", _of_mesh(threemf.write, threemf.verify)),
}
_MESHED = frozenset({"stl", "glb", "3mf"})


def need_mesh(names: Iterable[str]) -> bool:
    """Does any of these formats hold triangles?"""
    return not _MESHED.isdisjoint(names)


def export(name: str, part: Part, folder: Path) -> MadeFile:
    """Write `model.<name>` into a folder and read it back.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    media_type, write = _EXPORTS[name]
    made = MadeFile(name=f"model.{name}", role=name, file_format=name, media_type=media_type)
    write(part, folder / made.name)
    return made
