"""Leaving Gaussians out: what is broken, faint, tiny, huge, or outside of a region. Order is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import ARRAYS, COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def finite(gaussians: Gaussians) -> Gaussians:
    """Those without an infinite value or NaN (a rotation without a direction is read as NaN)."""
    good = np.ones(len(gaussians), bool)
    for name in ARRAYS:
        array = getattr(gaussians, name)
        good &= np.isfinite(array).reshape(len(array), -1).all(axis=1)
    return _only(gaussians, good)


def opaque(gaussians: Gaussians, opacity_min: float) -> Gaussians:
    """Those of at least this opacity (0 to 1)."""
    return _only(gaussians, np.greater_equal(gaussians.opacities, np.float32(opacity_min)))


def sized(gaussians: Gaussians, scale_min: float | None, scale_max: float | None) -> Gaussians:
    """Those whose largest scale (one standard deviation) is within bounds, ends included; None: no bound."""
    largest = gaussians.scales.max(axis=1)
    good = np.ones(len(gaussians), bool)
    if scale_min is not None:
        good &= largest >= np.float32(scale_min)
    if scale_max is not None:
        good &= largest <= np.float32(scale_max)
    return _only(gaussians, good)


def in_box(gaussians: Gaussians, least: Sequence[float], most: Sequence[float]) -> Gaussians:
    """Those whose centre lies between two corners (x, y, z), faces included."""
    low, high = np.array(least, np.float64), np.array(most, np.float64)
    inside: NDArray[np.bool_] = (gaussians.positions >= low) & (gaussians.positions <= high)
    return _only(gaussians, np.all(inside, axis=1))


def in_sphere(gaussians: Gaussians, center: Sequence[float], radius: float) -> Gaussians:
    """Those whose centre is no further than `radius` from `center`."""
    apart = gaussians.positions.astype(np.float64) - np.array(center, np.float64)
    squared: NDArray[np.float64] = np.einsum("nc,nc->n", apart, apart)
    return _only(gaussians, np.less_equal(squared, radius * radius))


def of_degree(gaussians: Gaussians, degree: int) -> Gaussians:
    """All of them, with spherical harmonics up to this degree; what has fewer stays as it is."""
    if gaussians.degree <= degree:
        return gaussians
    return Gaussians(
        gaussians.positions,
        gaussians.scales,
        gaussians.rotations,
        gaussians.opacities,
        np.ascontiguousarray(gaussians.harmonics[:, : COEFFICIENTS[degree]]),
    )


def _only(gaussians: Gaussians, which: NDArray[np.bool_]) -> Gaussians:
    return gaussians if which.all() else gaussians.take(which)
