"""Faces, shells and solids put together from edges that are shared by construction.

An edge is made once and laid on each surface it bounds, so neighbours meet in the same edge
and nothing has to be sewn or intersected. Wires run counter-clockwise in (u, v).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from OCP.BRep import BRep_Builder, BRep_Tool
from OCP.Geom import Geom_Line
from OCP.Geom2d import Geom2d_Line
from OCP.gp import gp_Dir2d, gp_Pnt, gp_Pnt2d
from OCP.Precision import Precision
from OCP.TopAbs import TopAbs_Orientation
from OCP.TopExp import TopExp
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS_Edge, TopoDS_Face, TopoDS_Shell, TopoDS_Solid, TopoDS_Vertex, TopoDS_Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from OCP.Geom import Geom_Curve, Geom_Surface
    from OCP.Geom2d import Geom2d_Curve
    from OCP.gp import gp_Ax2

TOLERANCE = Precision.Confusion_s()
TURN = 2.0 * math.pi
FORWARD, REVERSED = TopAbs_Orientation.TopAbs_FORWARD, TopAbs_Orientation.TopAbs_REVERSED
UNMOVED = TopLoc_Location()
BUILDER = BRep_Builder()

Loop: TypeAlias = "tuple[TopoDS_Edge, ...]"


def vertex(point: gp_Pnt, tolerance: float = TOLERANCE) -> TopoDS_Vertex:
    """A vertex."""
    made = TopoDS_Vertex()
    BUILDER.MakeVertex(made, point, tolerance)
    return made


def edge(
    curve: Geom_Curve, first: float, last: float, start: TopoDS_Vertex, end: TopoDS_Vertex
) -> TopoDS_Edge:
    """The part of `curve` from `first` to `last`; a closed edge has the same vertex twice."""
    made = TopoDS_Edge()
    BUILDER.MakeEdge(made, curve, TOLERANCE)
    BUILDER.Add(made, start.Oriented(FORWARD))
    BUILDER.Add(made, end.Oriented(REVERSED))
    BUILDER.Range(made, first, last)
    return made


def lay(on: Geom_Surface, curve: Geom2d_Curve, made: TopoDS_Edge) -> None:
    """Tell `made` where it runs on a surface; `curve` has the edge's own parameter."""
    BUILDER.UpdateEdge(made, curve, on, UNMOVED, TOLERANCE)


def lay_level(on: Geom_Surface, v: float, loop: Loop) -> None:
    """Lay edges that run along a line of constant `v`, with u as their parameter."""
    for made in loop:
        lay(on, Geom2d_Line(gp_Pnt2d(0.0, v), gp_Dir2d(1.0, 0.0)), made)


def lay_seam(on: Geom_Surface, made: TopoDS_Edge) -> None:
    """Lay the edge along which a surface closes, with v as its parameter.

    Going forward it runs at u = 2 pi, going back at u = 0.
    """
    there, back = (Geom2d_Line(gp_Pnt2d(u, 0.0), gp_Dir2d(0.0, 1.0)) for u in (TURN, 0.0))
    BUILDER.UpdateEdge(made, there, back, on, UNMOVED, TOLERANCE)


def start(loop: Loop) -> TopoDS_Vertex:
    """The vertex at which a loop begins."""
    return TopExp.FirstVertex_s(loop[0], True)


def height(at: TopoDS_Vertex) -> float:
    """The z of a vertex, in mm."""
    return float(BRep_Tool.Pnt_s(at).Z())


def reverse(loop: Loop) -> Loop:
    """The same loop run the other way round."""
    return tuple(made.Reversed() for made in reversed(loop))


def face(surface: Geom_Surface, loops: Sequence[Loop], *, outward: bool) -> TopoDS_Face:
    """The part of a surface to the left of `loops`; `outward` if its normal leaves the solid."""
    made = TopoDS_Face()
    BUILDER.MakeFace(made, surface, TOLERANCE)
    for loop in loops:
        BUILDER.Add(made, _wire(loop))
    return made if outward else made.Reversed()


def band(
    surface: Geom_Surface,
    lower: Loop,
    seam: TopoDS_Edge,
    upper: Loop,
    holes: Sequence[Loop] = (),
    *,
    outward: bool,
) -> TopoDS_Face:
    """A face that goes all the way round a surface closed in u, between two loops that run with u."""
    border = (*lower, seam, *reverse(upper), seam.Reversed())
    return face(surface, (border, *holes), outward=outward)


def _wire(loop: Loop) -> TopoDS_Wire:
    made = TopoDS_Wire()
    BUILDER.MakeWire(made)
    for part in loop:
        BUILDER.Add(made, part)
    made.Closed(True)
    return made


def solid(faces: Iterable[TopoDS_Face]) -> TopoDS_Solid:
    """The solid inside a closed shell of faces."""
    shell, made = TopoDS_Shell(), TopoDS_Solid()
    BUILDER.MakeShell(shell)
    for part in faces:
        BUILDER.Add(shell, part)
    shell.Closed(True)
    BUILDER.MakeSolid(made)
    BUILDER.Add(made, shell)
    return made


def ruling(frame: gp_Ax2, radius: float, lower: TopoDS_Vertex, upper: TopoDS_Vertex) -> TopoDS_Edge:
    """The straight edge on a cylinder about `frame` at u = 0; its parameter is the height above the frame."""
    x = frame.XDirection()
    foot = gp_Pnt(*(frame.Location().Coord(i) + radius * x.Coord(i) for i in (1, 2, 3)))
    first, last = (height(end) - foot.Z() for end in (lower, upper))
    return edge(Geom_Line(foot, frame.Direction()), first, last, lower, upper)
