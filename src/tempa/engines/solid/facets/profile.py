"""The circles about the axis along which an end of the tube is laid, from the bore to the rim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tempa.engines.solid.facets.chords import RIGHT, pieces

if TYPE_CHECKING:
    from tempa.engines.solid.facets.chords import Tolerance
    from tempa.engines.solid.templates.tube import Tube

# A unit vector by its parts away from the axis, about it, and up.
Normal: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle of the mesh. All rays have a point on it if it is `fine`, only evenly spaced ones if not."""

    radius: float
    fine: bool


def circles(tube: Tube, tolerance: Tolerance, step: float) -> list[Circle]:
    """The circles of an end; those that are not fine have chords of `step` radians."""
    radii = _radii(tube, tolerance)
    fine = [_by_hole(tube, radii, index) for index in range(len(radii))]
    if any(fine):
        _spread(fine, radii, 2.0 * math.sin(step / 4.0) ** 2)
    return [Circle(*pair) for pair in zip(radii, fine, strict=True)]


def _radii(tube: Tube, tolerance: Tolerance) -> list[float]:
    """Even steps along the fillet, but for those near the rim that numbers of 32 bits cannot tell apart.

    An arc within two spacings of the rim's radius is no farther than that from its chord.
    """
    flat, fillet = tube.flat_radius, tube.fillet_radius
    radii = [tube.outer_radius]
    if fillet > 0.0:
        count = pieces(RIGHT, tolerance.step(fillet))
        for number in range(count - 1, 0, -1):
            radius = flat + fillet * math.sin(RIGHT * number / count)
            if radii[-1] - radius >= 2.0 * tolerance.spacing:
                radii.append(radius)
        radii.append(flat)
    return [tube.inner_radius, *reversed(radii)]


def _by_hole(tube: Tube, radii: list[float], index: int) -> bool:
    """Does a circle bound a band that the holes reach into?"""
    if tube.hole_count == 0:
        return False
    low, high = radii[max(index - 1, 0)], radii[min(index + 1, len(radii) - 1)]
    return tube.pitch_radius - tube.hole_radius < high and tube.pitch_radius + tube.hole_radius > low


def _spread(fine: list[bool], radii: list[float], sagitta: float) -> None:
    """Two circles nearer to each other than their chords are to them must be cut by the same rays.

    Then their chords cannot cross, however thin the band is.
    """
    bands = range(1, len(radii))
    for inner in (*bands, *reversed(bands)):
        if radii[inner] - radii[inner - 1] <= 2.0 * sagitta * radii[inner]:
            fine[inner - 1] = fine[inner] = fine[inner - 1] or fine[inner]


def profile(tube: Tube, radius: float) -> tuple[float, Normal]:
    """How deep below its end the tube's surface lies at this radius, and its normal, up being outward."""
    beyond = radius - tube.flat_radius
    if tube.fillet_radius == 0.0 or beyond <= 0.0:
        return 0.0, (0.0, 0.0, 1.0)
    f = tube.fillet_radius
    rise = math.sqrt(max(tube.outer_radius - radius, 0.0) * (f + beyond))
    return beyond * beyond / (f + rise), (beyond / f, 0.0, rise / f)
