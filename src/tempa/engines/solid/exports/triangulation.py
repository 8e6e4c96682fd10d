"""The triangles of one face, taken out of the kernel in bulk.

A call for each node and triangle costs 75 ms for 37,000 triangles; a face that has nothing but
its triangulation, written in the kernel's own binary form and read here, costs 2 ms. That form
is versioned and its version is asked for by name, so another kernel writes the same.
"""

from __future__ import annotations

import io
import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from OCP.BinTools import BinTools, BinTools_FormatVersion
from OCP.BRep import BRep_Builder, BRep_Tool
from OCP.BRepLib import BRepLib_ToolTriangulatedShape
from OCP.TopAbs import TopAbs_Orientation
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Face

if TYPE_CHECKING:
    from OCP.gp import gp_Trsf
    from OCP.Poly import Poly_Triangulation

_MARK = b"Triangulations 1\n"
# Counts of nodes and triangles, whether there are (u, v) and normals, the deflection reached.
_HEAD = struct.Struct("<ii??d")


@dataclass(frozen=True, slots=True)
class Triangulation:
    """Points and unit normals as x, y, z, and three points (from 0) for each triangle.

    Seen from outside the solid, triangles run counter-clockwise and normals point at the viewer.
    """

    points: array[float]
    normals: array[float]
    triangles: array[int]


def triangulation(face: TopoDS_Face) -> Triangulation | None:
    """The triangles of a meshed face, where it stands in its solid; None if it has none."""
    place = TopLoc_Location()
    found = BRep_Tool.Triangulation_s(face, place)
    if found is None or found.NbTriangles() == 0:
        return None
    BRepLib_ToolTriangulatedShape.ComputeNormals_s(face, found)
    taken = _parse(_written(found))
    if not place.IsIdentity():
        taken = _moved(taken, place.Transformation())
    return _turned(taken) if face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED else taken


def _written(found: Poly_Triangulation) -> bytes:
    bare, stream = TopoDS_Face(), io.BytesIO()
    BRep_Builder().MakeFace(bare, found)
    BinTools.Write_s(bare, stream, True, True, BinTools_FormatVersion.BinTools_FormatVersion_VERSION_4)
    return stream.getvalue()


def _parse(data: bytes) -> Triangulation:
    start = data.index(_MARK) + len(_MARK)
    nodes, triangles, has_uv, has_normals, _ = _HEAD.unpack_from(data, start)
    assert has_normals
    points, corners, normals = array("d"), array("i"), array("f")
    at = start + _HEAD.size
    points.frombytes(data[at : at + 24 * nodes])
    at += (40 if has_uv else 24) * nodes
    corners.frombytes(data[at : at + 12 * triangles])
    at += 12 * triangles
    normals.frombytes(data[at : at + 12 * nodes])
    return Triangulation(points, normals, array("I", [corner - 1 for corner in corners]))


def _turned(seen: Triangulation) -> Triangulation:
    triangles = seen.triangles[:]
    triangles[1::3], triangles[2::3] = seen.triangles[2::3], seen.triangles[1::3]
    return Triangulation(seen.points, array("f", [-value for value in seen.normals]), triangles)


def _moved(seen: Triangulation, motion: gp_Trsf) -> Triangulation:
    """A location turns and shifts; it never mirrors or scales."""
    rows = [[motion.Value(row, column) for column in (1, 2, 3, 4)] for row in (1, 2, 3)]
    points, normals = array("d", seen.points), array("f", seen.normals)
    for axis, (a, b, c, shift) in enumerate(rows):
        points[axis::3] = array("d", [a * x + b * y + c * z + shift for x, y, z in _triples(seen.points)])
        normals[axis::3] = array("f", [a * x + b * y + c * z for x, y, z in _triples(seen.normals)])
    return Triangulation(points, normals, seen.triangles)


def _triples(values: array[float]) -> zip[tuple[float, float, float]]:
    return zip(values[0::3], values[1::3], values[2::3], strict=True)
