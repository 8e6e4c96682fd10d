"""Between the family's frame (RUB: x right, y up, z backward) and a file's axes.

RDF (x right, y down, z forward) is RUB turned by half a turn about x. That is a proper rotation, so
nothing is mirrored, and it is its own inverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import Gaussians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.formats.table import Axes

POSITION_SIGNS = np.array([1, -1, -1], np.float32)

# w, x, y, z of F q F, with F the half turn: the same ellipsoid as F q, whose own axes F would only
# turn into themselves; written so, an unrotated Gaussian stays unrotated.
ROTATION_SIGNS = np.array([1, 1, -1, -1], np.float32)

# The basis functions at (x, -y, -z). In the order of the 3DGS reference they go with
# 1 | y z x | xy yz 3z2-1 xz x2-y2 | y(3x2-y2) xyz y(5z2-1) z(5z2-3) x(5z2-1) z(x2-y2) x(x2-3y2).
HARMONIC_SIGNS = np.array([1, -1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1, 1, -1, 1], np.float32)


def harmonic_signs(coefficients: int) -> NDArray[np.float32]:
    """Of the first so many coefficients, to multiply an (n, k, 3) array with."""
    return HARMONIC_SIGNS[:coefficients, None]


def turned(gaussians: Gaussians) -> Gaussians:
    """All of them by half a turn about x."""
    return Gaussians(
        gaussians.positions * POSITION_SIGNS,
        gaussians.scales,
        gaussians.rotations * ROTATION_SIGNS,
        gaussians.opacities,
        gaussians.harmonics * harmonic_signs(gaussians.harmonics.shape[1]),
    )


def between(axes: Axes, gaussians: Gaussians) -> Gaussians:
    """From the family's frame into these axes; and just so from these axes into the frame."""
    return turned(gaussians) if axes == "RDF" else gaussians
