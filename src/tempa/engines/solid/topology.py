"""What a shape consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher
from OCP.TopAbs import TopAbs_ShapeEnum
from OCP.TopExp import TopExp, TopExp_Explorer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from OCP.TopoDS import TopoDS_Shape

ShapeMap = (
    IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher  # numbers shapes from 1, whatever their orientation
)

SOLID = TopAbs_ShapeEnum.TopAbs_SOLID
FACE = TopAbs_ShapeEnum.TopAbs_FACE
EDGE = TopAbs_ShapeEnum.TopAbs_EDGE
VERTEX = TopAbs_ShapeEnum.TopAbs_VERTEX


def uses(shape: TopoDS_Shape, kind: TopAbs_ShapeEnum) -> Iterator[TopoDS_Shape]:
    """Every use of a part of this kind, with its orientation there: a seam edge comes twice in its face."""
    explorer = TopExp_Explorer(shape, kind)
    while explorer.More():
        yield explorer.Current()
        explorer.Next()


def count(shape: TopoDS_Shape, kind: TopAbs_ShapeEnum) -> int:
    """How many different parts of this kind there are."""
    found = ShapeMap()
    TopExp.MapShapes_s(shape, kind, found)
    return int(found.Extent())
