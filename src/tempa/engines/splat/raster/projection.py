"""From Gaussians in space to ellipses in a picture: the projection of EWA splatting.

Zwicker et al., "EWA Splatting" (2002), with the conventions of Kerbl et al., "3D Gaussian Splatting
for Real-Time Radiance Field Rendering" (2023): 0.3 px of low-pass, a cut at an opacity of 1/255,
colours by spherical harmonics in the direction from the camera to the centre. One difference: an
ellipse ends exactly where its opacity falls below the cut, not at three standard deviations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.raster.jit import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR = 0.01  # units of the frame: what is nearer to the pinhole, or behind it, is not drawn
FAR = 1e30
VARIANCE_MAX = 1e30  # px^2: what is larger has no digits left to be drawn with
LOW_PASS = 0.3  # px^2 added to both variances: an ellipse is at least about a pixel wide
ALPHA_CUT = 1.0 / 255.0  # what is fainter does not show in 8 bits
COLOR_MAX = 1e4  # an endless one would be not a number where its weight is nought
EDGE_SLOPE = 1.3  # of the picture's half width: beyond it, slopes are held, as the affine map explodes
TILE = 16  # px: the width of one vector of float32 on machines that have AVX-512

# What of an ellipse the rasteriser needs, as columns of one record. The falloff at an offset (x, y) in
# pixels is exp(-8 s), s = (ACROSS x + SKEW y)^2 + (DOWN y)^2: a Cholesky factor of the inverse covariance.
# The square form A x^2 + 2 B x y + C y^2 loses its digits on a long and thin diagonal ellipse; this does not.
COLUMN, ROW, ACROSS, SKEW, DOWN, OPACITY, RED, GREEN, BLUE, DEPTH = range(10)
RECORD = 10
LEFT, RIGHT, TOP, BOTTOM = range(4)  # of an ellipse's box, in pixels; right and bottom lie outside
NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # the key of what is not drawn: behind all else

_C0 = 0.28209479177387814
_C1 = 0.4886025119029199
_C2 = (1.0925484305920792, -1.0925484305920792, 0.31539156525252005, -1.0925484305920792, 0.5462742152960396)
_C3 = (
    -0.5900435899266435,
    2.890611442640554,
    -0.4570457994644658,
    0.3731763325901154,
    -0.4570457994644658,
    1.445305721320277,
    -0.5900435899266435,
)


@inlined
def _basis(x: float, y: float, z: float, terms: int, out: NDArray[np.float64]) -> None:
    """Real spherical harmonics in a direction, with the order and signs of the 3DGS reference."""
    out[0] = _C0
    if terms > 1:
        out[1], out[2], out[3] = -_C1 * y, _C1 * z, -_C1 * x
    if terms > 4:
        out[4] = _C2[0] * x * y
        out[5] = _C2[1] * y * z
        out[6] = _C2[2] * (2.0 * z * z - x * x - y * y)
        out[7] = _C2[3] * x * z
        out[8] = _C2[4] * (x * x - y * y)
    if terms > 9:
        out[9] = _C3[0] * y * (3.0 * x * x - y * y)
        out[10] = _C3[1] * x * y * z
        out[11] = _C3[2] * y * (4.0 * z * z - x * x - y * y)
        out[12] = _C3[3] * z * (2.0 * z * z - 3.0 * x * x - 3.0 * y * y)
        out[13] = _C3[4] * x * (4.0 * z * z - x * x - y * y)
        out[14] = _C3[5] * z * (x * x - y * y)
        out[15] = _C3[6] * x * (x * x - 3.0 * y * y)


@inlined
def _covariance(
    scales: NDArray[np.float32],
    rotations: NDArray[np.float32],
    i: int,
    map_across: NDArray[np.float64],
    map_down: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Of an ellipse, in px^2: variances across and down, and how they go together.

    `map_across` and `map_down` are the rows of the affine map from the frame to the picture. A
    Gaussian's own axes, scaled, go through it; their dyads add up to what M R S S R' M' is.
    """
    w, x = float(rotations[i, 0]), float(rotations[i, 1])
    y, z = float(rotations[i, 2]), float(rotations[i, 3])
    two = 2.0 / (
        w * w + x * x + y * y + z * z
    )  # also right for a quaternion that is not quite of unit length
    u, v, t = map_across, map_down, scales[i]
    ax, ay, az = 1.0 - two * (y * y + z * z), two * (x * y + w * z), two * (x * z - w * y)
    bx, by, bz = two * (x * y - w * z), 1.0 - two * (x * x + z * z), two * (y * z + w * x)
    cx, cy, cz = two * (x * z + w * y), two * (y * z - w * x), 1.0 - two * (x * x + y * y)
    a1, a2 = t[0] * (u[0] * ax + u[1] * ay + u[2] * az), t[0] * (v[0] * ax + v[1] * ay + v[2] * az)
    b1, b2 = t[1] * (u[0] * bx + u[1] * by + u[2] * bz), t[1] * (v[0] * bx + v[1] * by + v[2] * bz)
    c1, c2 = t[2] * (u[0] * cx + u[1] * cy + u[2] * cz), t[2] * (v[0] * cx + v[1] * cy + v[2] * cz)
    xx, yy = a1 * a1 + b1 * b1 + c1 * c1, a2 * a2 + b2 * b2 + c2 * c2
    return xx + LOW_PASS, yy + LOW_PASS, a1 * a2 + b1 * b2 + c1 * c2


@inlined
def _affine_map(
    view: NDArray[np.float64],
    lens: NDArray[np.float64],
    slope_x: float,
    slope_y: float,
    depth: float,
    across: NDArray[np.float64],
    down: NDArray[np.float64],
) -> None:
    """The derivative of a point's column and row by its place in the frame."""
    focal, edge_x, edge_y = (
        lens[0],
        EDGE_SLOPE * 0.5 * lens[1] / lens[0],
        EDGE_SLOPE * 0.5 * lens[2] / lens[0],
    )
    held_x, held_y = min(max(slope_x, -edge_x), edge_x), min(max(slope_y, -edge_y), edge_y)
    for k in range(3):
        across[k] = focal / depth * (view[0, k] + held_x * view[2, k])
        down[k] = -focal / depth * (view[1, k] + held_y * view[2, k])


@inlined
def _enclose(
    column: float,
    row: float,
    reach_x: float,
    reach_y: float,
    lens: NDArray[np.float64],
    box: NDArray[np.int32],
) -> bool:
    """Find the pixels whose centres lie in reach; false if there are none.

    The first pixel's centre is half a pixel in.
    """
    left, right = max(np.ceil(column - reach_x - 0.5), 0.0), min(np.floor(column + reach_x + 0.5), lens[1])
    top, bottom = max(np.ceil(row - reach_y - 0.5), 0.0), min(np.floor(row + reach_y + 0.5), lens[2])
    if not (left < right and top < bottom):
        return False
    box[LEFT], box[RIGHT], box[TOP], box[BOTTOM] = left, right, top, bottom
    return True


@inlined
def _shade(
    x: float,
    y: float,
    z: float,
    harmonics: NDArray[np.float32],
    basis: NDArray[np.float64],
    record: NDArray[np.float32],
) -> None:
    """The colour seen in the direction of x, y, z."""
    inverse = 1.0 / math.sqrt(x * x + y * y + z * z)
    _basis(x * inverse, y * inverse, z * inverse, len(harmonics), basis)
    for channel in range(3):
        color = 0.5
        for k in range(len(harmonics)):
            color += basis[k] * harmonics[k, channel]
        if not color >= 0.0:  # below nought, or not a number
            color = 0.0
        record[RED + channel] = min(color, COLOR_MAX)


@kernel
def project(
    positions: NDArray[np.float32],
    scales: NDArray[np.float32],
    rotations: NDArray[np.float32],
    opacities: NDArray[np.float32],
    harmonics: NDArray[np.float32],
    view: NDArray[np.float64],
    lens: NDArray[np.float64],
    start: int,
    stop: int,
    records: NDArray[np.float32],
    boxes: NDArray[np.int32],
    keys: NDArray[np.uint64],
) -> None:
    """Fill records (n, RECORD), boxes (n, 4) and keys (n,) of the Gaussians start to stop.

    `view` (4, 3) is a camera's rotation with its position below; `lens` is focal length, width and
    height in pixels. Keys sort by depth, nearest first, and ties by index; what is not drawn (behind,
    outside, too faint, not finite) gets NOTHING.
    """
    basis, across, down = np.zeros(16), np.zeros(3), np.zeros(3)
    for i in range(start, stop):
        keys[i] = NOTHING
        opacity = min(float(opacities[i]), 1.0)
        x, y, z = positions[i, 0] - view[3, 0], positions[i, 1] - view[3, 1], positions[i, 2] - view[3, 2]
        depth = -(view[2, 0] * x + view[2, 1] * y + view[2, 2] * z)
        if not (NEAR <= depth < FAR and opacity >= ALPHA_CUT):  # nor what is not a number: it compares false
            continue
        slope_x = (view[0, 0] * x + view[0, 1] * y + view[0, 2] * z) / depth
        slope_y = (view[1, 0] * x + view[1, 1] * y + view[1, 2] * z) / depth
        column, row = 0.5 * lens[1] + lens[0] * slope_x, 0.5 * lens[2] - lens[0] * slope_y
        _affine_map(view, lens, slope_x, slope_y, depth, across, down)
        xx, yy, xy = _covariance(scales, rotations, i, across, down)
        own = xx - xy * xy / yy  # the variance across, on one row
        if not (own > 0.0 and xx < VARIANCE_MAX and yy < VARIANCE_MAX):
            continue
        reach = math.sqrt(2.0 * math.log(opacity / ALPHA_CUT))
        if not _enclose(column, row, reach * math.sqrt(xx), reach * math.sqrt(yy), lens, boxes[i]):
            continue
        # The form (x - xy / yy y)^2 / own + y^2 / yy, over 16: half of it is 8 s.
        factor, record = 0.25 / math.sqrt(own), records[i]
        record[COLUMN], record[ROW], record[OPACITY], record[DEPTH] = column, row, opacity, depth
        record[ACROSS], record[SKEW], record[DOWN] = factor, -factor * xy / yy, 0.25 / math.sqrt(yy)
        _shade(x, y, z, harmonics[i], basis, record)
        keys[i] = (np.uint64(np.float32(depth).view(np.uint32)) << np.uint64(32)) | np.uint64(i)
