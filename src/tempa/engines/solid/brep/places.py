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
