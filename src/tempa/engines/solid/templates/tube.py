"""A flanged tube in numbers: its radii, how its holes lie, and its volume. Lengths in mm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.engines.solid.quadrature import integrate
from tempa.engines.solid.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a quarter circle leaves of its square, and how far its centroid lies from the corner's side.
CORNER = 1.0 - math.pi / 4.0

# Of the part's volume; three digits below the promise of 1e-9.
QUADRATURE_TOLERANCE = 1e-13


@dataclass(frozen=True, slots=True)
class Tube:
    """The tube along +Z from z = 0. No holes: `hole_count` is 0. No fillet: `fillet_radius` is 0."""

    outer_radius: float
    inner_radius: float
    length: float
    fillet_radius: float = 0.0
    hole_count: int = 0
    pitch_radius: float = 0.0
    hole_radius: float = 0.0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Tube:
        """Read the parameters of template `flanged-tube@1`, as they stand in work."""
        holes = parameters["hole_pattern"] or {"count": 0, "pitch_diameter": 0.0, "hole_diameter": 0.0}
        return cls(
            outer_radius=parameters["outer_diameter"] / 2.0,
            inner_radius=parameters["inner_diameter"] / 2.0,
            length=parameters["length"],
            fillet_radius=parameters["fillet_radius"],
            hole_count=holes["count"],
            pitch_radius=holes["pitch_diameter"] / 2.0,
            hole_radius=holes["hole_diameter"] / 2.0,
        )

    @property
    def flat_radius(self) -> float:
        """Radius of the circle where an end stops being flat and its fillet begins."""
        return self.outer_radius - self.fillet_radius

    @property
    def reach(self) -> float:
        """How far the holes reach beyond the flat; 0 or less if they keep clear of the fillet."""
        return self.pitch_radius + self.hole_radius - self.flat_radius

    @property
    def clearance(self) -> float:
        """How far the holes keep from the flat on its outside; 0 or less if they reach into it."""
        return self.pitch_radius - self.hole_radius - self.flat_radius

    @property
    def holes_meet_fillet(self) -> bool:
        """Does any hole cut into the fillet?"""
        return self.hole_count > 0 and self.fillet_radius > 0.0 and self.reach > 0.0

    @property
    def reference(self) -> Reference:
        """The volume from the dimensions alone."""
        extent = max(self.outer_radius, self.length)
        if self.holes_meet_fillet:
            volume = self._clear_volume + self.hole_count * self._spared()
            return Reference("quadrature", volume, self._full_area, extent)
        return Reference("closed-form", self._clear_volume, self._full_area, extent)

    @property
    def _full_area(self) -> float:
        """Area before the fillets and the holes took their shares of it, and of whole holes."""
        both = self.outer_radius + self.inner_radius
        ends = (self.outer_radius - self.inner_radius) * both
        return 2.0 * math.pi * (both * self.length + ends + self.hole_count * self.hole_radius * self.length)

    @property
    def _clear_volume(self) -> float:
        """Volume if every hole took a full cylinder out of the tube."""
        wall = (self.outer_radius - self.inner_radius) * (self.outer_radius + self.inner_radius)
        section = wall - self.hole_count * self.hole_radius**2
        return math.pi * section * self.length - self._rounded_off

    @property
    def _rounded_off(self) -> float:
        """Volume that the fillets take off both rims, by Pappus."""
        f = self.fillet_radius
        centroid = self.flat_radius + f / (6.0 * CORNER)
        return 2.0 * 2.0 * math.pi * centroid * f * f * CORNER

    def _spared(self) -> float:
        """Volume that one hole does not take, because the fillets took it before.

        Rings of radius rho inside the hole, `rho = p - h cos t`; with t as the variable the
        width of the ring inside the hole has no square root at its ends.
        """
        absolute = QUADRATURE_TOLERANCE * self._clear_volume / self.hole_count
        inside = (self.flat_radius - self.pitch_radius + self.hole_radius) * 0.5 / self.hole_radius
        first = 2.0 * math.asin(math.sqrt(inside)) if inside > 0.0 else 0.0
        return 2.0 * integrate(self._spared_ring, first, math.pi, absolute=absolute)

    def _spared_ring(self, t: float) -> float:
        p, h, f = self.pitch_radius, self.hole_radius, self.fillet_radius
        rho = p - h * math.cos(t)
        # R - rho without cancellation: holes may pass the rim at 1e-3 of a radius of 5e5
        to_rim = self.outer_radius - p - h + 2.0 * h * math.cos(t / 2.0) ** 2
        beyond = max(f - to_rim, 0.0)
        depth = beyond * beyond / (f + math.sqrt(max(to_rim, 0.0) * (f + beyond)))
        width = 4.0 * math.asin(min(h * math.sin(t) / (2.0 * math.sqrt(rho * p)), 1.0))
        return depth * rho * width * h * math.sin(t)
