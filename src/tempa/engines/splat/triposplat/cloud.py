"""The model's Gaussians as the family's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.gaussians import Gaussians
from tempa.engines.splat.triposplat.torch_side import array

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A quarter turn about x: the model has z up and y away from the viewer, the family y up and z towards them.
# It is upstream's own turn for its .ply files (x, -z, y), seen from a frame whose y is up.
_TURN = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)


def gaussians(decoded: Any) -> Gaussians:
    """Take over the decoder's values: activated scales and opacities, quaternions w x y z with their bias.

    A quaternion of length 0 becomes none; what is not finite stays so, for the gate to count.
    """
    x, y, z = array(decoded.get_xyz).T
    rotations = array(decoded._rotation).astype(np.float64) + array(decoded.rots_bias)  # noqa: SLF001
    return Gaussians(
        positions=np.ascontiguousarray(np.stack((x, z, -y), axis=1)),
        scales=array(decoded.get_scaling),
        rotations=_turned(rotations),
        opacities=np.ascontiguousarray(array(decoded.get_opacity)[:, 0]),
        harmonics=array(decoded._features_dc),  # noqa: SLF001 - no accessor; (n, 1, 3), degree 0
    )


def _turned(rotations: NDArray[np.float64]) -> NDArray[np.float32]:
    w, x, y, z = rotations.T
    c, s = _TURN[0], _TURN[1]
    turned = np.stack((c * w - s * x, c * x + s * w, c * y - s * z, c * z + s * y), axis=1)
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    turned = np.where(lengths == 0, (1.0, 0.0, 0.0, 0.0), turned / np.where(lengths == 0, 1.0, lengths))
    return np.ascontiguousarray(turned, np.float32)
