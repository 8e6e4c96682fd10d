"""CIELAB (CIE 1976, D65) of sRGB (IEC 61966-2-1): distances in it are roughly as the eye sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHITE = np.array([0.95047, 1.0, 1.08883])
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_WHITE = (_TO_XYZ / _WHITE[:, None]).astype(np.float32)
_LINEAR_BELOW = 216 / 24389
_SLOPE = 24389 / 27


def _linear() -> NDArray[np.float32]:
    encoded = np.arange(256) / 255
    curve = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return curve.astype(np.float32)


_LINEAR = _linear()


def lab(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """L*, a*, b* of colours (..., 3)."""
    linear = _LINEAR[rgb]
    x, y, z = (_eased(linear, weights) for weights in _TO_WHITE)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _eased(linear: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """One of X, Y and Z by its white, through CIELAB's curve.

    Term by term: a matrix product's sums go as the library's threads have it, and so would the last bits.
    """
    red, green, blue = weights
    relative = red * linear[..., 0] + green * linear[..., 1] + blue * linear[..., 2]
    eased: NDArray[np.float32] = np.cbrt(relative)
    dark = relative <= _LINEAR_BELOW
    eased[dark] = (np.float32(_SLOPE) * relative[dark] + 16) / 116
    return eased
