"""Tori that would cross their own axis, told as surfaces of revolution, which STEP can say exactly.

A fillet larger than the flat it leaves is a piece of such a torus. The kernel's STEP writer turns
it into a revolved spline that is 1e-7 mm off: 1e-7 of the volume of a part of 1 mm. A circle turned
about the axis has the same points at the same (u, v), so everything laid on the torus stays right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from OCP.BRep import BRep_Builder, BRep_Tool
from OCP.BRepBuilderAPI import BRepBuilderAPI_Copy
from OCP.Geom import Geom_Circle, Geom_SurfaceOfRevolution, Geom_ToroidalSurface
from OCP.gp import gp_Ax2, gp_Vec
from OCP.TopAbs import TopAbs_Orientation
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS

from tempa.engines.solid import topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from OCP.Geom import Geom_Surface
    from OCP.Geom2d import Geom2d_Curve
    from OCP.TopoDS import TopoDS_Edge, TopoDS_Face, TopoDS_Shape

_BUILDER = BRep_Builder()


def revolved_tori(shape: TopoDS_Shape) -> TopoDS_Shape:
    """The shape itself if it has no such torus, else a copy that has none."""
    if not any(_crosses_axis(face) for face in _faces(shape)):
        return shape
    copy = BRepBuilderAPI_Copy(shape, True, False).Shape()
    for face in filter(_crosses_axis, _faces(copy)):
        _revolve(face)
    return copy


def _faces(shape: TopoDS_Shape) -> Iterator[TopoDS_Face]:
    return map(TopoDS.Face, topology.uses(shape, topology.FACE))


def _crosses_axis(face: TopoDS_Face) -> bool:
    surface = BRep_Tool.Surface_s(face, TopLoc_Location())
    return isinstance(surface, Geom_ToroidalSurface) and surface.MajorRadius() <= surface.MinorRadius()


def _revolve(face: TopoDS_Face) -> None:
    place = TopLoc_Location()
    torus = BRep_Tool.Surface_s(face, place)
    revolved = _revolution(torus)
    edges = topology.ShapeMap()
    for edge in topology.uses(face, topology.EDGE):
        edges.Add(edge)
    for number in range(1, edges.Extent() + 1):
        _lay(TopoDS.Edge(edges.FindKey(number)), torus, revolved, place)
    _BUILDER.UpdateFace(face, revolved, place, BRep_Tool.Tolerance_s(face))


def _revolution(torus: Geom_ToroidalSurface) -> Geom_SurfaceOfRevolution:
    frame = torus.Position()
    out, up = frame.XDirection(), frame.Direction()
    center = frame.Location().Translated(gp_Vec(out).Multiplied(torus.MajorRadius()))
    circle = Geom_Circle(gp_Ax2(center, out.Crossed(up), out), torus.MinorRadius())
    return Geom_SurfaceOfRevolution(circle, frame.Axis())


def _lay(edge: TopoDS_Edge, old: Geom_Surface, new: Geom_Surface, place: TopLoc_Location) -> None:
    tolerance = BRep_Tool.Tolerance_s(edge)
    there = _curve(edge, TopAbs_Orientation.TopAbs_FORWARD, old, place)
    if BRep_Tool.IsClosed_s(edge, old, place):
        back = _curve(edge, TopAbs_Orientation.TopAbs_REVERSED, old, place)
        _BUILDER.UpdateEdge(edge, there, back, new, place, tolerance)
    else:
        _BUILDER.UpdateEdge(edge, there, new, place, tolerance)


def _curve(
    edge: TopoDS_Edge, way: TopAbs_Orientation, on: Geom_Surface, place: TopLoc_Location
) -> Geom2d_Curve:
    return BRep_Tool.CurveOnSurface_s(TopoDS.Edge(edge.Oriented(way)), on, place, 0.0, 0.0)
