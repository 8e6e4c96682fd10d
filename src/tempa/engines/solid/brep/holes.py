"""The holes of a flanged tube: the edges they leave on its ends, and their walls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from OCP.Geom import Geom_Circle, Geom_CylindricalSurface
from OCP.gp import gp_Ax1, gp_Ax2, gp_Ax3, gp_Dir, gp_Pnt, gp_Vec2d

from tempa.engines.solid.brep import sheets
from tempa.engines.solid.brep.hole_curve import Component, follow, half_angle
from tempa.engines.solid.brep.places import Place, place
from tempa.engines.solid.brep.splines import plane_curve, space_curve

if TYPE_CHECKING:
    from OCP.Geom import Geom_Curve, Geom_Surface
    from OCP.TopoDS import TopoDS_Edge, TopoDS_Face, TopoDS_Vertex

    from tempa.engines.solid.brep.sheets import Loop
    from tempa.engines.solid.templates.tube import Tube

UP = gp_Dir(0.0, 0.0, 1.0)
AXIS = gp_Ax1(gp_Pnt(0.0, 0.0, 0.0), UP)


@dataclass(frozen=True, slots=True)
class End:
    """One end of the tube: its height, its fillet if it has one, and what nodes call its z and v."""

    height: float
    fillet_height: float
    fillet: Geom_Surface | None
    z: Component
    v: Component

    @property
    def is_top(self) -> bool:
        """The end at z = length, not the one at z = 0."""
        return self.z is Component.TOP_Z

    @property
    def flat_v(self) -> float:
        """The fillet's v where the end is flat."""
        return math.pi / 2.0 if self.is_top else -math.pi / 2.0


@dataclass(frozen=True, slots=True)
class Bite:
    """The edges a hole leaves on one end, counter-clockwise about the hole, seen from +Z.

    `stops` are the u and the vertex at which it meets the circle where the flat ends.
    """

    flat: Loop
    curved: Loop
    start: TopoDS_Vertex
    stops: tuple[tuple[float, TopoDS_Vertex], ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """One hole: what it leaves on both ends, and the face between."""

    bottom: Bite
    top: Bite
    wall: TopoDS_Face


class Drill:
    """Makes the holes of a tube. All share one curve, turned about the tube's axis."""

    def __init__(self, tube: Tube) -> None:
        self._tube, self._place = tube, place(tube)
        self._half = half_angle(tube) if self._place is Place.ACROSS else math.pi
        self._nodes = [] if self._place is Place.ON_FLAT else follow(tube, -self._half, self._half, sheets.TURN - self._half)

    def hole(self, index: int, bottom: End, top: End) -> Hole:
        """Hole number `index`; the first lies on +X."""
        wall = Geom_CylindricalSurface(gp_Ax3(self._axis(index, 0.0)), self._tube.hole_radius)
        lower, upper = self._bite(index, bottom, wall), self._bite(index, top, wall)
        return Hole(lower, upper, self._wall(index, wall, lower, upper))

    def _bite(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        if self._place is Place.ON_FLAT:
            return self._flat_bite(index, end, wall)
        if self._place is Place.ACROSS:
            return self._bite_across(index, end, wall)
        return self._fillet_bite(index, end, wall)

    def _flat_bite(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        circle = self._circle(index, end)
        start = sheets.vertex(circle.Value(0.0))
        flat = (sheets.edge(circle, 0.0, sheets.TURN, start, start),)
        sheets.lay_level(wall, end.height, flat)
        return Bite(flat, (), start)

    def _bite_across(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        circle, last = self._circle(index, end), sheets.TURN - 2.0 * self._half
        psi=self._half - self._nodes[-1][1][Component.U].value
        import os
        tol=max(1e-7, float(os.environ.get("VT","0"))*1e-7/max(math.sin(psi),1e-9))
        start, stop = sheets.vertex(circle.Value(0.0),tol), sheets.vertex(circle.Value(last),tol)
        flat = (sheets.edge(circle, 0.0, last, start, stop),)
        sheets.lay_level(wall, end.height, flat)
        curved = (self._curved_edge(index, end, wall, stop, start),)
        u, spread = self._u(index), self._nodes[-1][1][Component.U].value
        return Bite(flat, curved, start, ((u - spread, stop), (u + spread, start)))

    def _fillet_bite(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        start = sheets.vertex(self._space_curve(index, end).Value(-math.pi))
        curved = (self._curved_edge(index, end, wall, start, start),)
        return Bite((), curved, start)

    def _curved_edge(self, index: int, end: End, wall: Geom_Surface, start: TopoDS_Vertex, stop: TopoDS_Vertex) -> TopoDS_Edge:
        made = sheets.edge(self._space_curve(index, end), -self._half, self._half, start, stop)
        on_fillet = plane_curve(self._nodes, Component.U, end.v)
        on_fillet.Translate(gp_Vec2d(self._u(index), 0.0))
        sheets.lay(end.fillet, on_fillet, made)
        sheets.lay(wall, plane_curve(self._nodes, Component.THETA, end.z), made)
        return made

    def _space_curve(self, index: int, end: End) -> Geom_Curve:
        curve = space_curve(self._nodes, Component.X, Component.Y, end.z)
        curve.Rotate(AXIS, self._azimuth(index))
        return curve

    def _wall(self, index: int, wall: Geom_Surface, lower: Bite, upper: Bite) -> TopoDS_Face:
        seam = sheets.ruling(self._axis(index, 0.0), self._tube.hole_radius, lower.start, upper.start)
        sheets.lay_seam(wall, seam)
        return sheets.band(wall, lower.flat + lower.curved, seam, upper.flat + upper.curved, outward=False)

    def _circle(self, index: int, end: End) -> Geom_Circle:
        return Geom_Circle(self._axis(index, end.height), self._tube.hole_radius)

    def _axis(self, index: int, height: float) -> gp_Ax2:
        """The hole's axis; its X direction is where the hole's edges and its seam begin."""
        turned = self._azimuth(index)
        p = self._tube.pitch_radius
        first = turned + (0.0 if self._place is Place.ON_FLAT else self._half if self._place is Place.ACROSS else -math.pi)
        centre = gp_Pnt(p * math.cos(turned), p * math.sin(turned), height)
        return gp_Ax2(centre, UP, gp_Dir(math.cos(first), math.sin(first), 0.0))

    def _azimuth(self, index: int) -> float:
        return index * sheets.TURN / self._tube.hole_count

    def _u(self, index: int) -> float:
        return (index + 0.5) * sheets.TURN / self._tube.hole_count
