"""How a hole bounds one end of a flanged tube: on the flat, on the fillet, or across both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from OCP.Geom import Geom_Circle, Geom_CylindricalSurface, Geom_Line
from OCP.gp import gp_Ax1, gp_Ax2, gp_Ax3, gp_Dir, gp_Pnt, gp_Vec2d

from tempa.engines.solid.brep import sheets
from tempa.engines.solid.brep.hole_curve import Component, follow, half_angle
from tempa.engines.solid.brep.splines import plane_curve, space_curve

if TYPE_CHECKING:
    from OCP.Geom import Geom_Surface
    from OCP.TopoDS import TopoDS_Edge, TopoDS_Face, TopoDS_Vertex

    from tempa.engines.solid.brep.sheets import Loop
    from tempa.engines.solid.templates.tube import Tube

# Circles this close are made to touch. A hundredth of the kernel's tolerance, so to the kernel
# the part is the same; circles that cross by more do so over a chord above 1e-6 mm.
TOUCH = 1e-9
UP = gp_Dir(0.0, 0.0, 1.0)


class Place(Enum):
    """Where a hole lies, against the circle at which an end's flat becomes its fillet."""

    ON_FLAT = auto()
    TOUCHING_FROM_FLAT = auto()
    ACROSS = auto()
    TOUCHING_FROM_FILLET = auto()
    ON_FILLET = auto()

    @property
    def flat(self) -> bool:
        """Is the hole's whole edge on the flat?"""
        return self in (Place.ON_FLAT, Place.TOUCHING_FROM_FLAT)

    @property
    def touches(self) -> bool:
        """Does the hole touch the circle without crossing it?"""
        return self in (Place.TOUCHING_FROM_FLAT, Place.TOUCHING_FROM_FILLET)


def place(tube: Tube) -> Place:
    """Where the holes of a tube lie."""
    if tube.fillet_radius == 0.0 or tube.reach < -TOUCH:
        return Place.ON_FLAT
    if tube.reach <= TOUCH:
        return Place.TOUCHING_FROM_FLAT
    clearance = tube.pitch_radius - tube.hole_radius - tube.flat_radius
    if clearance < -TOUCH:
        return Place.ACROSS
    return Place.TOUCHING_FROM_FILLET if clearance <= TOUCH else Place.ON_FILLET


@dataclass(frozen=True, slots=True)
class End:
    """One end of the tube: its height, its fillet's surface, and what nodes call its z and v."""

    height: float
    fillet: Geom_Surface | None
    z: Component
    v: Component


@dataclass(frozen=True, slots=True)
class Bite:
    """The edges a hole leaves on one end, counter-clockwise about the hole, seen from +Z.

    `stops` are the u and the vertex at which it meets the circle where the flat ends.
    """

    flat: Loop
    curved: Loop
    start: TopoDS_Vertex
    stops: tuple[tuple[float, TopoDS_Vertex], ...] = ()

    @property
    def loop(self) -> Loop:
        """All edges, from `start`."""
        return self.flat + self.curved


class Drill:
    """Makes the holes of a tube. All share one curve, turned about the tube's axis."""

    def __init__(self, tube: Tube) -> None:
        self._place = place(tube)
        self._tube = _snapped(tube, self._place)
        self._half = half_angle(tube) if self._place is Place.ACROSS else math.pi
        self._nodes = [] if self._place.flat else follow(self._tube, -self._half, self._half, self._half)
        # theta at which edges, walls and seam of a hole begin
        self._first = 0.0 if self._place.flat else self._half if self._place is Place.ACROSS else -math.pi

    def holes(self, bottom: End, top: End) -> list[Hole]:
        """All holes, ordered by their u."""
        return [self._hole(index, bottom, top) for index in range(self._tube.hole_count)]

    def _hole(self, index: int, bottom: End, top: End) -> Hole:
        step = 2.0 * math.pi / self._tube.hole_count
        azimuth, u = index * step, (index + 0.5) * step
        wall = Geom_CylindricalSurface(gp_Ax3(self._axis(azimuth, 0.0)), self._tube.hole_radius)
        lower, upper = (self._bite(end, azimuth, u, wall) for end in (bottom, top))
        return Hole(lower, upper, _close(wall, lower, upper))
