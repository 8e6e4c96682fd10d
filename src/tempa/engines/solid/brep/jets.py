"""Truncated power series: a function's value and first derivatives, carried through arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

ORDER = 4


@dataclass(frozen=True, slots=True)
class Jet:
    """Taylor coefficients `c[k] = f^(k)(t) / k!` of a function at one point, k < `ORDER`."""

    c: tuple[float, ...]

    def __add__(self, other: Jet | float) -> Jet:
        return Jet(tuple(a + b for a, b in zip(self.c, _lift(other).c, strict=True)))

    def __sub__(self, other: Jet | float) -> Jet:
        return self + _lift(other) * -1.0

    def __mul__(self, other: Jet | float) -> Jet:
        if not isinstance(other, Jet):
            return Jet(tuple(a * other for a in self.c))
        return Jet(tuple(sum(self.c[i] * other.c[k - i] for i in range(k + 1)) for k in range(ORDER)))

    def __truediv__(self, other: Jet) -> Jet:
        quotient: list[float] = []
        for k in range(ORDER):
            rest = sum(quotient[i] * other.c[k - i] for i in range(k))
            quotient.append((self.c[k] - rest) / other.c[0])
        return Jet(tuple(quotient))

    @property
    def value(self) -> float:
        """The function's value at the point."""
        return self.c[0]

    def sqrt(self) -> Jet:
        """Square root of a positive function."""
        root = [math.sqrt(self.c[0])]
        for k in range(1, ORDER):
            rest = sum(root[i] * root[k - i] for i in range(1, k))
            root.append((self.c[k] - rest) / (2.0 * root[0]))
        return Jet(tuple(root))

    def derivative(self) -> Jet:
        """The derivative; its last coefficient is unknown here and set to 0."""
        return Jet((*(k * self.c[k] for k in range(1, ORDER)), 0.0))

    def integral(self, value: float) -> Jet:
        """The antiderivative that has `value` at the point; the last coefficient is not used."""
        return Jet((value, *(self.c[k] / (k + 1) for k in range(ORDER - 1))))


def variable(t: float) -> Jet:
    """The function t itself, at t."""
    return Jet((t, 1.0, *(0.0,) * (ORDER - 2)))


def cosine(t: float) -> Jet:
    """The cosine, at t."""
    return Jet((math.cos(t), -math.sin(t), -math.cos(t) / 2.0, math.sin(t) / 6.0))


def sine(t: float) -> Jet:
    """The sine, at t."""
    return Jet((math.sin(t), math.cos(t), -math.sin(t) / 2.0, -math.cos(t) / 6.0))


def _lift(value: Jet | float) -> Jet:
    return value if isinstance(value, Jet) else Jet((value, *(0.0,) * (ORDER - 1)))
