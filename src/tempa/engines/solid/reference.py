"""What a part's volume must be, known without the kernel that builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RELATIVE_ERROR_MAX = 1e-9


@dataclass(frozen=True, slots=True)
class Reference:
    """A volume in mm3, how it was found, and the volume of the bounds that the solid lies in."""

    method: Literal["closed-form", "quadrature"]
    volume: float
    bounds_volume: float

    @property
    def allowance(self) -> float:
        """How far, in mm3, the kernel's volume may be off."""
        return RELATIVE_ERROR_MAX * self.volume

    def allows(self, volume: float) -> bool:
        """Is this volume near enough?"""
        return abs(volume - self.volume) <= self.allowance
