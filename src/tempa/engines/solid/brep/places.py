"""Where the holes of a flanged tube lie against its fillets."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.engines.solid.templates.tube import Tube

# Lengths in mm. Wires that touch are intersecting to BRepCheck (27 of 500 random tubes with holes
# tangent to the end of the flat), wires that keep a gap are not (0 of 3,000). On the flat a hole
# may be moved without changing the volume, so there the gap is one that readers of STEP files also
# see, whose tolerance is 1e-7: at a gap of 1e-9 OCCT's own lost up to 1.4 % of such parts.
FLAT_GAP = 2.5e-7
CROSSING_MIN = 1e-7
CROSSED = 2e-7
FILLET_GAP_PER_HOLE_RADIUS = 1e-9
GAP_PER_OUTER_RADIUS = 1e-13


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

    A hole on the flat moves by less than 4e-7 mm, one on the fillet by 1e-9 of its radius.
    """
    if tube.fillet_radius == 0.0:
        return tube
    if -FLAT_GAP < tube.reach < CROSSING_MIN:
        return replace(tube, pitch_radius=tube.flat_radius - tube.hole_radius - FLAT_GAP)
    gap = max(
        FILLET_GAP_PER_HOLE_RADIUS * min(tube.hole_radius, 1.0), GAP_PER_OUTER_RADIUS * tube.outer_radius
    )
    if abs(tube.clearance) < gap:
        return replace(tube, pitch_radius=tube.flat_radius + tube.hole_radius + gap)
    return tube


def cross(tube: Tube, sagitta: float) -> Tube:
    """The tube to tessellate: holes that nearly touch the end of the flat cross it.

    `sagitta` is how far, in mm, a facet may lie off that circle. Two circles that pass each other at
    a hundredth of that, polygons cannot tell apart, and the mesher let 15 % of the volume go; where
    they cross it did not fail. Holes move by less than an eighth of `sagitta`.
    """
    if tube.fillet_radius == 0.0:
        return tube
    if -sagitta / 10.0 < tube.reach < CROSSED:
        reach = min(max(sagitta / 100.0, CROSSED), tube.fillet_radius / 4.0)
        return replace(tube, pitch_radius=tube.flat_radius - tube.hole_radius + reach)
    if -CROSSING_MIN < tube.clearance < 1e-6:
        overlap = min(1e-6, tube.hole_radius / 1000.0)
        return replace(tube, pitch_radius=tube.flat_radius + tube.hole_radius - overlap)
    return tube
