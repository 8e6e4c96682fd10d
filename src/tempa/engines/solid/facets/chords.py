"""How long the chords of a circle may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

RIGHT = math.pi / 2.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far chords may lie off their arcs, how far they may turn from one to the next, in mm and radians.

    Numbers of 32 bits lie `spacing` apart, in mm. No chord need be shorter than four of them: points
    that fall together in a file may tear the mesh.
    """

    linear: float
    angular: float
    spacing: float

    def step(self, radius: float) -> float:
        """The largest angle of a chord, in radians; its sagitta is `radius * 2 sin(angle / 4)**2`."""
        close = 4.0 * math.asin(min(1.0, math.sqrt(self.linear / (2.0 * radius))))
        return max(min(self.angular, close), min(4.0 * self.spacing / radius, RIGHT))


def pieces(extent: float, step: float) -> int:
    """Into how many equal pieces to cut, so that none is longer than `step`."""
    return max(1, math.ceil(extent / step * (1.0 - 1e-12)))


def spaced(first: float, last: float, step: float) -> list[float]:
    """From `first` to `last`, both included, in equal steps of `step` at most."""
    count = pieces(last - first, step)
    return [first + (last - first) * i / count for i in range(count)] + [last]
