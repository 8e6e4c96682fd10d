"""Where the holes of a flanged tube lie against its fillets."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.engines.solid.templates.tube import Tube

# A hole that would touch the circle where the flat ends is kept this far off it. A hundredth of
# the kernel's tolerance, so to the kernel the part is the same; wires that share a point of
# tangency are called intersecting by BRepCheck (27 of 500 random tubes), wires 1e-9 apart are not.
TOUCH = 1e-9


class Place(Enum):
    """Where the edge of a hole lies: on the flat of an end, on its fillet, or across both."""

    ON_FLAT = auto()
    ACROSS = auto()
    ON_FILLET = auto()


def place(tube: Tube) -> Place:
    """Where the holes of a tube lie."""
    if tube.fillet_radius == 0.0 or tube.reach < 0.0:
        return Place.ON_FLAT
    return Place.ON_FILLET if tube.clearance > 0.0 else Place.ACROSS


def unstick(tube: Tube) -> Tube:
    """The tube with holes that would touch the end of the flat moved away from it, by at most twice `TOUCH`."""
    if tube.fillet_radius == 0.0:
        return tube
    touch = 1e-9 + 4e-16*tube.outer_radius
    if abs(tube.reach) <= touch:
        return replace(tube, pitch_radius=tube.flat_radius - tube.hole_radius - touch)
    touch = 1e-9*min(tube.hole_radius,1.0) + 4e-16*tube.outer_radius
    if abs(tube.clearance) <= touch:
        return replace(tube, pitch_radius=tube.flat_radius + tube.hole_radius + touch)
    return tube
