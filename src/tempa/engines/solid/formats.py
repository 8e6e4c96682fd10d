"""The file formats this family writes. Lengths are in mm, in GLB in metres (glTF 2.0 section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FormatName: TypeAlias = Literal["step", "brep", "stl", "glb", "3mf"]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One format: what it is called in requests, its media type, its unit, and whether it holds triangles."""

    name: FormatName
    title: str
    media_type: str
    unit: str
    is_mesh: bool

    @property
    def file_name(self) -> str:
        """The name of the file that holds the part in this format."""
        return f"model.{self.name}"


FORMATS: Mapping[str, FileFormat] = {
    each.name: each
    for each in (
        FileFormat("step", "STEP (ISO 10303-214)", "model/step", "mm", is_mesh=False),
        FileFormat("brep", "Open CASCADE BREP, text", "application/x-brep", "mm", is_mesh=False),
        FileFormat("stl", "STL, binary", "model/stl", "mm", is_mesh=True),
        FileFormat("glb", "glTF 2.0, binary; +Y up as glTF has it", "model/gltf-binary", "m", is_mesh=True),
        FileFormat("3mf", "3D Manufacturing Format", "model/3mf", "mm", is_mesh=True),
    )
}
