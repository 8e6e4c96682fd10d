"""The flanged tube's volume by formula: what the demo holds the kernel to. Pure."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def flanged_tube_volume(parameters: Mapping[str, Any]) -> float:
    """Volume in mm3 of the template `flanged-tube@1`, where no hole meets a fillet.

    A tube, less its holes, less what the fillets of both outer rims take away: the ring swept by a
    corner of area `f^2 (1 - pi/4)` whose centroid lies `f - f / (6 (1 - pi/4))` inside the rim
    (Pappus).
    """
    outer = parameters["outer_diameter"] / 2
    inner = parameters["inner_diameter"] / 2
    length = parameters["length"]
    fillet = parameters.get("fillet_radius", 0.0)
    pattern = parameters.get("hole_pattern", {"count": 0, "hole_diameter": 0.0})
    holes = pattern["count"] * (pattern["hole_diameter"] / 2) ** 2
    corner = 1 - pi / 4
    centroid = outer - fillet + fillet / (6 * corner)
    return float(pi * (outer**2 - inner**2 - holes) * length - 2 * 2 * pi * centroid * fillet**2 * corner)
