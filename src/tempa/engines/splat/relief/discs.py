"""Flat Gaussians that lie in a surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPREAD = 0.48  # of a cell's side: the standard deviation along the surface
THIN = 0.15  # of a cell: the standard deviation across the surface
STRETCH_MAX = 12.0  # the slope at the rim of a ball of 75 cells, half a cell in; steeper is the rim's own


def footprint(
    tangent_across: NDArray[np.float64], tangent_up: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Axes and lengths of the ellipses that unit circles become under the tangents (n, 3).

    The axes (n, 3, 3), as columns: the longer, the shorter, the normal; right-handed. The lengths
    (n, 2) are the singular values, in closed form from the 2 x 2 metric.
    """
    xx = np.einsum("ij,ij->i", tangent_across, tangent_across)
    yy = np.einsum("ij,ij->i", tangent_up, tangent_up)
    xy = np.einsum("ij,ij->i", tangent_across, tangent_up)
    angle = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    longer = cosine * tangent_across + sine * tangent_up
    shorter = cosine * tangent_up - sine * tangent_across
    lengths = np.stack((np.linalg.norm(longer, axis=1), np.linalg.norm(shorter, axis=1)), axis=1)
    lengths = np.maximum(lengths, 1e-9)
    longer /= lengths[:, :1]
    shorter /= lengths[:, 1:]
    return np.stack((longer, shorter, np.cross(longer, shorter)), axis=2), lengths


def quaternions(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit quaternions w, x, y, z of rotation matrices (n, 3, 3) whose columns are the axes.

    By the largest of the four components (Shepperd, 1978): no root of a difference near zero.
    """
    m = axes
    trace = m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    squares = np.stack((trace, m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]), axis=1)
    largest = np.argmax(squares, axis=1)
    # Rows of 4 q q' (the matrix of products), each a multiple of q.
    skew = (m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1])
    even = (m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2])
    diagonal = [1.0 + 2.0 * squares[:, k] - trace for k in (1, 2, 3)]
    rows = (
        (1.0 + trace, skew[0], skew[1], skew[2]),
        (skew[0], diagonal[0], even[0], even[1]),
        (skew[1], even[0], diagonal[1], even[2]),
        (skew[2], even[1], even[2], diagonal[2]),
    )
    out = np.empty((len(m), 4))
    for k, row in enumerate(rows):
        mine = largest == k
        out[mine] = np.stack([component[mine] for component in row], axis=1)
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out
