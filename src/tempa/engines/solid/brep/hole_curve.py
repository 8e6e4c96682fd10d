"""The curve in which a hole parallel to the axis meets the fillets of a flanged tube.

In the frame of a hole on +X, theta is the angle about the hole's axis, 0 pointing outward.
All lengths below are differences that keep their digits when the hole passes the rim or the
bore at a distance of 1e-3 on a radius of 5e5.
"""

from __future__ import annotations

import math
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from tempa.engines.solid.brep.jets import Jet, cosine, sine, variable
from tempa.engines.solid.brep.splines import Node, nodes

if TYPE_CHECKING:
    from tempa.engines.solid.templates.tube import Tube

RELATIVE_TOLERANCE = 1e-9
TOLERANCE_MAX = 1e-8
ROUNDING = 1e-15


class Component(IntEnum):
    """Coordinates of a node: in space, on the tori (u, v), and about the hole's axis."""

    X = 0
    Y = 1
    BOTTOM_Z = 2
    TOP_Z = 3
    U = 4
    BOTTOM_V = 5
    TOP_V = 6
    THETA = 7


def half_angle(tube: Tube) -> float:
    """The theta at which the hole crosses the circle where the flat ends, in (0, pi)."""
    flat, pitch, hole = tube.flat_radius, tube.pitch_radius, tube.hole_radius
    beyond = tube.reach * (pitch + hole + flat)
    within = (flat - (pitch - hole)) * (flat + (pitch - hole))
    return 2.0 * math.atan2(math.sqrt(beyond), math.sqrt(within))


def follow(tube: Tube, first: float, last: float, offset: float) -> list[Node]:
    """Nodes along the curve from theta `first` to `last`; `Component.THETA` counts from -`offset`."""
    size = min(RELATIVE_TOLERANCE * tube.hole_radius, TOLERANCE_MAX) + ROUNDING * (
        tube.outer_radius + tube.length
    )
    turn, tilt = size / tube.outer_radius, size / tube.fillet_radius
    return nodes(partial(_at, tube, offset), first, last, (size, size, size, size, turn, tilt, tilt, size))


def _at(tube: Tube, offset: float, theta: float) -> tuple[Jet, ...]:
    p, h, f = tube.pitch_radius, tube.hole_radius, tube.fillet_radius
    nearer, farther = _versines(theta)
    rho_squared = farther * (2.0 * p * h) + (p - h) ** 2
    rho = rho_squared.sqrt()
    to_rim = nearer * (2.0 * p * h) / (rho + (p + h)) + (tube.outer_radius - p - h)
    rise = (to_rim * (to_rim * -1.0 + 2.0 * f)).sqrt()
    u_slope = (farther * p + (h - p)) * h / rho_squared
    tilt = (to_rim.derivative() / rise).integral(math.atan2(rise.value, f - to_rim.value))
    return (
        cosine(theta) * h + p,
        sine(theta) * h,
        rise * -1.0 + f,
        rise + (tube.length - f),
        u_slope.integral(math.atan2(h * math.sin(theta), p + h * math.cos(theta))),
        tilt * -1.0,
        tilt,
        variable(theta) + offset,
    )


def _versines(theta: float) -> tuple[Jet, Jet]:
    """1 - cos and 1 + cos at theta, each without cancellation."""
    down, up = cosine(theta) * -1.0, cosine(theta)
    return (
        Jet((2.0 * math.sin(theta / 2.0) ** 2, *down.c[1:])),
        Jet((2.0 * math.cos(theta / 2.0) ** 2, *up.c[1:])),
    )
