"""Where a surface ends or bends sharply, and how near to that a point lies.

A disc that lies across a crease sticks out into the air: a lit box had a dark and ragged seam along its
edges, made of the discs of its other side. Near a crease discs are made narrow instead.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.mesh.sampling import Samples

_SMOOTH = math.cos(math.radians(30.0))  # between the normals of two triangles that share a side


def creases(corners: NDArray[np.float64], normals: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which sides (f, 3) are creases, or have no other triangle or several. Side k: from corner k to k + 1.

    Two triangles share a side if its ends are the same to the bit.
    """
    keys = _sides(corners).reshape(-1)
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    pairs = first[np.diff(first, append=len(keys)) == 2]
    one, other = order[pairs], order[pairs + 1]
    smooth = np.einsum("pk,pk->p", normals[one // 3], normals[other // 3]) > _SMOOTH
    found = np.ones(len(keys), bool)
    found[one[smooth]] = found[other[smooth]] = False
    return found.reshape(-1, 3)


def _sides(corners: NDArray[np.float64]) -> NDArray[np.int64]:
    """A number for each side (f, 3), whichever way it runs."""
    flat = corners.reshape(-1, 3)
    order = np.lexsort(flat.T)
    new = (np.diff(flat[order], axis=0, prepend=np.nan) != 0.0).any(axis=1)
    vertex = np.empty(len(flat), np.int64)
    vertex[order] = np.cumsum(new) - 1
    ends = np.stack((vertex.reshape(-1, 3), np.roll(vertex.reshape(-1, 3), -1, axis=1)))
    numbers: NDArray[np.int64] = ends.min(axis=0) * len(flat) + ends.max(axis=0)
    return numbers


def nearest(
    corners: NDArray[np.float64], creased: NDArray[np.bool_], samples: Samples
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far (n,) each sample is from its own triangle's nearest crease, and which way (n, 3) that runs.

    Without a crease it is infinitely far, and the way is that of the first side.
    """
    sides = np.roll(corners, -1, axis=1) - corners
    lengths = np.maximum(np.linalg.norm(sides, axis=2), 1e-300)
    twice = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    heights = np.where(creased, twice[:, None] / lengths, np.inf)  # of the corner that faces the side
    share = np.maximum(np.roll(samples.weights, -2, axis=1), 1e-9)  # side k is faced by corner k + 2
    distances = share * heights[samples.face]
    side = distances.argmin(axis=1)
    ways = sides[samples.face, side] / lengths[samples.face, side, None]
    return np.take_along_axis(distances, side[:, None], axis=1)[:, 0], ways
