"""Adaptive Gauss-Legendre quadrature in plain floats."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = 20
DEPTH_MAX = 60


def integrate(function: Callable[[float], float], first: float, last: float, *, absolute: float) -> float:
    """Integral of a function that is smooth inside [first, last], to about `absolute`.

    An interval is halved until the rule's value agrees with the sum of its halves.
    """
    pending = [(first, last, _rule(function, first, last), 0)]
    parts: list[float] = []
    while pending:
        a, b, whole, depth = pending.pop()
        middle = (a + b) / 2.0
        left, right = _rule(function, a, middle), _rule(function, middle, b)
        if abs(left + right - whole) <= absolute or depth >= DEPTH_MAX:
            parts.append(left + right)
        else:
            pending += [(a, middle, left, depth + 1), (middle, b, right, depth + 1)]
    return math.fsum(parts)


def _rule(function: Callable[[float], float], first: float, last: float) -> float:
    middle, half = (first + last) / 2.0, (last - first) / 2.0
    return half * math.fsum(weight * function(middle + half * x) for x, weight in _gauss_legendre(POINTS))


@cache
def _gauss_legendre(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights on [-1, 1]: Newton's method on the Legendre polynomial."""
    return tuple(_node(count, index) for index in range(count))


def _node(count: int, index: int) -> tuple[float, float]:
    x = math.cos(math.pi * (index + 0.75) / (count + 0.5))
    for _ in range(6):
        value, slope = _legendre(count, x)
        x -= value / slope
    _, slope = _legendre(count, x)
    return x, 2.0 / ((1.0 - x * x) * slope * slope)


def _legendre(count: int, x: float) -> tuple[float, float]:
    before, value = 1.0, x
    for k in range(2, count + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, count * (x * value - before) / (x * x - 1.0)
