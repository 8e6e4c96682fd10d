"""What a part's volume must be, known without the kernel that builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RELATIVE_ERROR_MAX = 1e-9
# The kernel sums face by face contributions of the size of the solid's bounds; their rounding is
# left over. It shows where a wall is thinner than a millionth of the radius: 2.8e-8 was measured
# for a wall of 1e-3 mm on a radius of 5e5 mm, which is 1.1e-16 of the bounds.
ROUNDING = 1e-15


@dataclass(frozen=True, slots=True)
class Reference:
    """A volume in mm3, how it was found, and the volume of the bounds that the solid lies in."""

    method: Literal["closed-form", "quadrature"]
    volume: float
    bounds_volume: float

    @property
    def allowance(self) -> float:
        """How far, in mm3, the kernel's volume may be off."""
        return max(RELATIVE_ERROR_MAX * self.volume, ROUNDING * self.bounds_volume)

    def allows(self, volume: float) -> bool:
        """Is this volume near enough?"""
        return abs(volume - self.volume) <= self.allowance
