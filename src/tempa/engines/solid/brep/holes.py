"""The holes of a flanged tube: the edges they leave on its ends, and their walls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from OCP.Geom import Geom_Circle, Geom_CylindricalSurface
from OCP.gp import gp_Ax1, gp_Ax2, gp_Ax3, gp_Dir, gp_Pnt, gp_Vec2d

from tempa.engines.solid.brep import sheets
from tempa.engines.solid.brep.hole_curve import Component, follow, half_angle
from tempa.engines.solid.brep.places import Place, place
from tempa.engines.solid.brep.splines import plane_curve, space_curve

if TYPE_CHECKING:
    from OCP.Geom import Geom_Curve, Geom_Surface
    from OCP.Geom2d import Geom2d_Curve
    from OCP.TopoDS import TopoDS_Edge, TopoDS_Face, TopoDS_Vertex

    from tempa.engines.solid.brep.sheets import Loop
    from tempa.engines.solid.templates.tube import Tube

UP = gp_Dir(0.0, 0.0, 1.0)
AXIS = gp_Ax1(gp_Pnt(0.0, 0.0, 0.0), UP)
# Curves nearer to each other than this (mm, and a share of the outer radius) are one to BRepCheck.
LIKENESS, LIKENESS_PER_RADIUS = 2e-7, 1e-11

Stop: TypeAlias = "tuple[float, TopoDS_Vertex]"


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

    `stops` are the u and the vertices at which they cross the circle where the flat ends.
    """

    flat: Loop
    curved: Loop
    start: TopoDS_Vertex
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """One hole: what it leaves on both ends, and the face between."""

    bottom: Bite
    top: Bite
    wall: TopoDS_Face


@dataclass(frozen=True, slots=True)
class _Traces:
    """The curve of a hole on +X on one fillet: in space, on the fillet, and on the hole's wall."""

    space: Geom_Curve
    fillet: Geom2d_Curve
    wall: Geom2d_Curve


class Drill:
    """Makes the holes of a tube. All share one curve, turned about the tube's axis."""

    def __init__(self, tube: Tube, bottom: End, top: End) -> None:
        self._tube, self._bottom, self._top = tube, bottom, top
        self._place = place(tube)
        self._half = half_angle(tube) if self._place is Place.ACROSS else math.pi
        self._spread = 0.0
        self._traces: dict[Component, _Traces] = {}
        if self._place is not Place.ON_FLAT:
            self._trace()

    def _trace(self) -> None:
        nodes = follow(self._tube, -self._half, self._half, sheets.TURN - self._half)
        self._spread = nodes[-1][1][Component.U].value
        for end in (self._bottom, self._top):
            space = space_curve(nodes, Component.X, Component.Y, end.z)
            fillet = plane_curve(nodes, Component.U, end.v)
            self._traces[end.z] = _Traces(space, fillet, plane_curve(nodes, Component.THETA, end.z))

    def hole(self, index: int) -> Hole:
        """Hole number `index`; the first lies on +X."""
        axis = self._axis(index, 0.0)
        wall = Geom_CylindricalSurface(gp_Ax3(axis), self._tube.hole_radius)
        lower, upper = self._bite(index, self._bottom, wall), self._bite(index, self._top, wall)
        seam = sheets.ruling(axis, self._tube.hole_radius, lower.start, upper.start)
        sheets.lay_seam(wall, seam)
        face = sheets.band(wall, lower.flat + lower.curved, seam, upper.flat + upper.curved, outward=False)
        return Hole(lower, upper, face)

    def _bite(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        if self._place is Place.ON_FLAT:
            return self._bite_on_flat(index, end, wall)
        if self._place is Place.ACROSS:
            return self._bite_across(index, end, wall)
        return self._bite_on_fillet(index, end, wall)

    def _bite_on_flat(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        circle = self._circle(index, end)
        start = sheets.vertex(circle.Value(0.0))
        flat = (sheets.edge(circle, 0.0, sheets.TURN, start, start),)
        sheets.lay_level(wall, end.height, flat)
        return Bite(flat, (), start)

    def _bite_across(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        circle, last = self._circle(index, end), sheets.TURN - 2.0 * self._half
        start, stop = (sheets.vertex(circle.Value(t), self._vertex_tolerance()) for t in (0.0, last))
        flat = (sheets.edge(circle, 0.0, last, start, stop),)
        sheets.lay_level(wall, end.height, flat)
        curved = (self._curved_edge(index, end, wall, stop, start),)
        u = self._u(index)
        return Bite(flat, curved, start, ((u - self._spread, stop), (u + self._spread, start)))

    def _bite_on_fillet(self, index: int, end: End, wall: Geom_Surface) -> Bite:
        start = sheets.vertex(self._turned(index, end).Value(-math.pi))
        return Bite((), (self._curved_edge(index, end, wall, start, start),), start)

    def _vertex_tolerance(self) -> float:
        """How far from a crossing at a small angle the two circles cannot be told apart."""
        likeness = LIKENESS + LIKENESS_PER_RADIUS * self._tube.outer_radius
        chord = 2.0 * self._tube.hole_radius * math.sin(self._half)
        angle = abs(math.sin(self._half - self._spread))
        return max(float(sheets.TOLERANCE), min(likeness / max(angle, likeness), chord / 3.0))

    def _curved_edge(
        self, index: int, end: End, wall: Geom_Surface, start: TopoDS_Vertex, stop: TopoDS_Vertex
    ) -> TopoDS_Edge:
        made = sheets.edge(self._turned(index, end), -self._half, self._half, start, stop)
        traces = self._traces[end.z]
        sheets.lay(end.fillet, traces.fillet.Translated(gp_Vec2d(self._u(index), 0.0)), made)
        sheets.lay(wall, traces.wall, made)
        return made

    def _turned(self, index: int, end: End) -> Geom_Curve:
        return self._traces[end.z].space.Rotated(AXIS, self._azimuth(index))

    def _circle(self, index: int, end: End) -> Geom_Circle:
        return Geom_Circle(self._axis(index, end.height), self._tube.hole_radius)

    def _axis(self, index: int, height: float) -> gp_Ax2:
        """The hole's axis; its X direction is where the hole's edges and its seam begin."""
        azimuth, p = self._azimuth(index), self._tube.pitch_radius
        first = {Place.ON_FLAT: 0.0, Place.ACROSS: self._half, Place.ON_FILLET: -math.pi}[self._place]
        centre = gp_Pnt(p * math.cos(azimuth), p * math.sin(azimuth), height)
        return gp_Ax2(centre, UP, gp_Dir(math.cos(azimuth + first), math.sin(azimuth + first), 0.0))

    def _azimuth(self, index: int) -> float:
        return index * sheets.TURN / self._tube.hole_count

    def _u(self, index: int) -> float:
        """The azimuth counted from the tube's seam, half a step before the first hole."""
        return (index + 0.5) * sheets.TURN / self._tube.hole_count
