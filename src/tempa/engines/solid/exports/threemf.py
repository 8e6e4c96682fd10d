"""3MF: a zip archive with one model in millimetres, its vertices shared by their triangles."""

from __future__ import annotations

import zipfile
import zlib
from array import array
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tempa.engines.solid.exports.readback import different, same

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.engines.solid.exports.mesh import Mesh

CORE = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02"
MODEL = "3D/3dmodel.model"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_CONTENT_TYPES = (
    f'{_DECLARATION}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/>'
    "</Types>"
)
_RELATIONSHIPS = (
    f'{_DECLARATION}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="model" Target="/{MODEL}"'
    ' Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/></Relationships>'
)
# %.9g is the fewest digits that give every 32-bit float back.
_VERTEX = '<vertex x="%.9g" y="%.9g" z="%.9g"/>'
_TRIANGLE = '<triangle v1="%d" v2="%d" v3="%d"/>'
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment a zip archive can tell
_FILE_MODE = 0o100644
_UNIX = 3
_LEVEL = 6


def write(mesh: Mesh, path: Path) -> None:
    """Write a mesh as the one object of the one build."""
    parts = {"[Content_Types].xml": _CONTENT_TYPES, "_rels/.rels": _RELATIONSHIPS, MODEL: _model(mesh)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(_entry(name), text, compresslevel=_LEVEL)


def _entry(name: str) -> zipfile.ZipInfo:
    """Nothing in it depends on the clock, the user or the system."""
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = _UNIX
    entry.external_attr = _FILE_MODE << 16
    return entry


def _model(mesh: Mesh) -> str:
    vertices, triangles = len(mesh.vertices) // 3, mesh.triangle_count
    return "".join(
        (
            f'{_DECLARATION}<model unit="millimeter" xml:lang="en-US" xmlns="{CORE}"><resources>',
            '<object id="1" name="model" type="model"><mesh><vertices>',
            _VERTEX * vertices % tuple(mesh.vertices),
            "</vertices><triangles>",
            _TRIANGLE * triangles % tuple(mesh.corners),
            '</triangles></mesh></object></resources><build><item objectid="1"/></build></model>\n',
        )
    )


def verify(path: Path, mesh: Mesh) -> None:
    """Read the file again: checksums hold, and the model has the same vertices and triangles.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    try:
        vertices, corners = _read(path)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, ET.ParseError) as error:
        raise different(path, "structure") from error
    same(path, "triangles", wrote=mesh.triangle_count, found=len(corners) // 3)
    same(path, "corners", wrote=mesh.corners, found=corners)
    same(path, "coordinates", wrote=mesh.vertices, found=vertices)


def _read(path: Path) -> tuple[array[float], array[int]]:
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise different(path, "checksum", found=damaged)
        model = ET.fromstring(archive.read(MODEL))  # noqa: S314 - written by us a moment ago
    same(path, "unit", wrote="millimeter", found=model.get("unit"))
    vertices, corners = array("f"), array("I")
    for vertex in model.iter(f"{{{CORE}}}vertex"):
        vertices.extend([float(vertex.attrib[axis]) for axis in "xyz"])
    for triangle in model.iter(f"{{{CORE}}}triangle"):
        corners.extend([int(triangle.attrib[corner]) for corner in ("v1", "v2", "v3")])
    return vertices, corners
