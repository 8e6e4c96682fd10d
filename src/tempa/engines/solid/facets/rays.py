"""Where a ray from the tube's axis meets a hole.

By the power of a point, the radii of both crossings have the same product on every ray. With
`turn` as the angle at the hole's axis between ray and crossing, from 0 on the ray through the
hole's centre to a right angle on the ray that touches it, both sides of the hole are followed at
once, in even steps. No difference of large numbers is taken.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tempa.engines.solid.facets.chords import RIGHT, spaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.engines.solid.facets.chords import Tolerance
    from tempa.engines.solid.templates.tube import Tube


@dataclass(frozen=True, slots=True)
class Ray:
    """A half-line from the axis, its azimuth counted from the hole's centre: where it enters and leaves."""

    azimuth: float
    near: float
    far: float
    turn: float


def hole_rays(tube: Tube, circles: Sequence[float], tolerance: Tolerance) -> list[Ray]:
    """Rays from the hole's centre to its side, among them all on which its edge crosses one of `circles`.

    There, `near` or `far` is that circle's radius to the last bit. The first ray has azimuth 0.
    """
    middle, *others = _crossings(tube, circles, tolerance.spacing / 2.0)
    marks = [Ray(0.0, *middle, 0.0), *(_mark(tube, near, far) for near, far in others)]
    step = _turn_step(tube, tolerance)
    rays = marks[:1]
    for left, right in pairwise(marks):
        rays += [_between(tube, left, right, turn) for turn in spaced(left.turn, right.turn, step)[1:-1]]
        rays.append(right)
    return rays


def _turn_step(tube: Tube, tolerance: Tolerance) -> float:
    """A step of `turn` within which neither hole nor rim turn too far; an azimuth takes part in both."""
    p, h = tube.pitch_radius, tube.hole_radius
    return min(tolerance.step(h) / (1.0 + h / p), tolerance.step(tube.outer_radius) * p / h)


def _crossings(tube: Tube, circles: Sequence[float], apart: float) -> list[tuple[float, float]]:
    """Radii at which a ray enters and leaves: in the middle, at the side, and on every circle between.

    What is nearer to a circle than `apart` is on it.
    """
    inner, outer = tube.pitch_radius - tube.hole_radius, tube.pitch_radius + tube.hole_radius
    power = inner * outer
    side = math.sqrt(power)
    pairs = {(inner, outer)}
    for radius in circles:
        if inner + apart < radius < outer - apart and abs(radius - side) > apart:
            pairs.add((min(radius, power / radius), max(radius, power / radius)))
    snapped = {(_snap(near, circles, apart), _snap(far, circles, apart)) for near, far in pairs}
    return [*sorted(snapped), (_snap(side, circles, apart),) * 2]


def _snap(radius: float, circles: Sequence[float], apart: float) -> float:
    after = bisect_left(circles, radius)
    nearest = min(circles[max(after - 1, 0) : after + 1], key=lambda circle: abs(circle - radius))
    return nearest if abs(nearest - radius) <= apart else radius


def _mark(tube: Tube, near: float, far: float) -> Ray:
    p, h = tube.pitch_radius, tube.hole_radius
    if near == far:
        return Ray(math.asin(h / p), near, far, RIGHT)
    across = (near - (p - h)) * (p + h - near)
    azimuth = 2.0 * math.atan2(math.sqrt(max(across, 0.0)), math.sqrt((p + near - h) * (p + near + h)))
    return Ray(azimuth, near, far, math.atan2(p * math.sin(azimuth), (far - near) / 2.0))


def _between(tube: Tube, left: Ray, right: Ray, turn: float) -> Ray:
    """Beyond neither of its neighbours, which may have been moved onto a circle."""
    p, h = tube.pitch_radius, tube.hole_radius
    azimuth = math.asin(h / p * math.sin(turn))
    far = p * math.cos(azimuth) + h * math.cos(turn)
    near = (p - h) * (p + h) / far
    return Ray(azimuth, min(max(near, left.near), right.near), max(min(far, left.far), right.far), turn)
