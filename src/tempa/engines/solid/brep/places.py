"""Where the holes of a flanged tube lie against its fillets."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.engines.solid.templates.tube import Tube

# Lengths in mm. BRepCheck calls wires that touch intersecting (27 of 500 random tubes with holes
# tangent to the end of the flat), and wires this far apart not (0 of 3,000). Both gaps are below
# the kernel's tolerance, so to the kernel the part is the same.
KERNEL_TOLERANCE = 1e-7
GAP = 2.5e-7
GAP_PER_RADIUS = 1e-13


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
    """The tube with its holes moved so that none touches the circle where the flat ends.

    They move by less than the kernel's tolerance: on the flat, where that changes no volume, by
    up to `KERNEL_TOLERANCE`; on the fillet by up to `GAP` of the hole's radius.
    """
    if tube.fillet_radius == 0.0:
        return tube
    rounding = GAP_PER_RADIUS * tube.outer_radius
    gap = max(GAP, rounding)
    if -gap < tube.reach < KERNEL_TOLERANCE:
        return replace(tube, pitch_radius=tube.flat_radius - tube.hole_radius - gap)
    gap = max(GAP * min(tube.hole_radius, 1.0), rounding)
    if abs(tube.clearance) < gap:
        return replace(tube, pitch_radius=tube.flat_radius + tube.hole_radius + gap)
    return tube
