"""Gaussians along a curve that keeps neighbours together: what is stored or merged in blocks gains by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS = 21  # three times 21 are the 63 of a positive int64
_CELLS = (1 << _BITS) - 1
_SPREAD = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)


def morton(positions: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
    """Indices that sort positions by their Morton code in the box they span; equal codes stay in order.

    Positions must be finite.
    """
    return np.argsort(codes(positions), kind="stable")


def codes(positions: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Morton codes (bits of x, y, z in turns, x lowest) in the cube around the positions."""
    wide = positions.astype(np.float64)
    least = wide.min(axis=0)
    side = float((wide.max(axis=0) - least).max()) or 1.0
    cells = ((wide - least) * (_CELLS / side)).astype(np.int64)
    x, y, z = (_spread(cells[:, axis]) for axis in range(3))
    return x | (y << 1) | (z << 2)


def _spread(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two empty bits behind each of 21 (Morton 1966, by doubling)."""
    for shift, mask in _SPREAD:
        values = (values | (values << shift)) & mask
    return values
