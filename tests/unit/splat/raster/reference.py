"""A second rasteriser to compare with: float64 NumPy, one Gaussian after the other over all of the picture.

Written from the papers (EWA splatting; 3DGS, appendix A), not from the kernels: matrices as they stand
there, the inverse of the covariance, no tiles, no boxes, no lists. Harmonics come from scipy's complex ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.raster.camera import Camera


def harmonic(degree: int, order: int, direction: NDArray[np.float64]) -> float:
    """A real harmonic of the 3DGS reference: it keeps the Condon-Shortley phase of the odd orders."""
    x, y, z = direction
    theta, phi = math.acos(max(-1.0, min(1.0, z))), math.atan2(y, x)
    value = complex(sph_harm_y(degree, abs(order), theta, phi))
    if order == 0:
        return value.real
    return math.sqrt(2.0) * (value.real if order > 0 else value.imag)


def color(coefficients: NDArray[np.float32], direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seen in a direction (from the camera): never below 0."""
    total = np.full(3, 0.5)
    for k, coefficient in enumerate(coefficients.astype(np.float64)):
        degree = math.isqrt(k)
        total += harmonic(degree, k - degree * (degree + 1), direction) * coefficient
    clipped: NDArray[np.float64] = np.maximum(total, 0.0)
    return clipped


def picture(gaussians: Gaussians, camera: Camera) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Premultiplied colours (h, w, 3) and alpha (h, w)."""
    rows, columns = np.mgrid[0 : camera.height, 0 : camera.width] + 0.5
    rgb, through = np.zeros((camera.height, camera.width, 3)), np.ones((camera.height, camera.width))
    own = (gaussians.positions.astype(np.float64) - camera.position) @ camera.rotation.T
    for i in np.argsort(-own[:, 2], kind="stable"):
        if -own[i, 2] < 0.01:
            continue
        alpha = _alpha(gaussians, camera, own[i], int(i), columns, rows)
        seen = gaussians.positions[i].astype(np.float64) - camera.position
        weight = np.where(through >= 1e-4, alpha * through, 0.0)
        rgb += weight[..., None] * color(gaussians.harmonics[i], seen / np.linalg.norm(seen))
        through = through - weight
    return rgb, 1.0 - through


def _alpha(
    gaussians: Gaussians,
    camera: Camera,
    own: NDArray[np.float64],
    i: int,
    columns: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> NDArray[np.float64]:
    x, y, depth, focal = own[0], own[1], -own[2], camera.focal_pixels
    edge_x, edge_y = 0.65 * camera.width / focal * depth, 0.65 * camera.height / focal * depth
    held_x, held_y = np.clip(x, -edge_x, edge_x), np.clip(y, -edge_y, edge_y)
    # The picture's coordinates are f x / depth and -f y / depth; depth grows as own z falls.
    jacobian = focal / depth * np.array([[1.0, 0.0, held_x / depth], [0.0, -1.0, -held_y / depth]])
    w, qx, qy, qz = gaussians.rotations[i].astype(np.float64)
    axes = Rotation.from_quat([qx, qy, qz, w]).as_matrix()
    spread = axes @ np.diag(gaussians.scales[i].astype(np.float64) ** 2) @ axes.T
    affine = jacobian @ camera.rotation
    inverse = np.linalg.inv(affine @ spread @ affine.T + 0.3 * np.eye(2))
    across = columns - (camera.width / 2 + focal * x / depth)
    down = rows - (camera.height / 2 - focal * y / depth)
    power = inverse[0, 0] * across**2 + 2.0 * inverse[0, 1] * across * down + inverse[1, 1] * down**2
    alpha = np.minimum(float(gaussians.opacities[i]) * np.exp(-0.5 * power), 0.99)
    return np.where(alpha >= 1.0 / 255.0, alpha, 0.0)
