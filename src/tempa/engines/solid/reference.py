"""What a part's volume must be, known without the kernel that builds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

RELATIVE_ERROR_MAX = 1e-9
# A surface whose every point is off by the spacing of doubles at the part's outermost coordinate
# encloses another volume by that spacing times its area. What was measured keeps within 2.3 times
# that wherever it is more than 1e-9 of the volume (docs/decisions/0010).
SPACINGS_MAX = 4.0


@dataclass(frozen=True, slots=True)
class Reference:
    """A volume in mm3 and how it was found.

    With what says how exactly doubles can hold the part: the area of its surface in mm2 (or a
    little more), and the largest of its coordinates in mm.
    """

    method: Literal["closed-form", "quadrature"]
    volume: float
    area: float
    extent: float

    @property
    def allowance(self) -> float:
        """How far, in mm3, the kernel's volume may be off."""
        return self.allowance_in(math.ulp)

    def allowance_in(self, spacing: Callable[[float], float]) -> float:
        """The same where numbers are not doubles: `spacing` is how far they lie apart at a number."""
        return max(RELATIVE_ERROR_MAX * self.volume, SPACINGS_MAX * spacing(self.extent) * self.area)

    def allows(self, volume: float) -> bool:
        """Is this volume near enough?"""
        return abs(volume - self.volume) <= self.allowance
