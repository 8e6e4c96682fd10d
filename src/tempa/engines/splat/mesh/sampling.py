"""Points spread evenly over a surface: the same density everywhere, and no gaps.

Points drawn independently leave holes that can be seen. Here each triangle gets its share of the points
by its area to within one, counted along a space-filling curve so that many small triangles share evenly
too, and within a triangle they follow a low-discrepancy sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.formats.order import morton

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The two-dimensional golden ratio: the sequence k (1/g, 1/g^2) mod 1 is even at any length (Roberts, 2018).
_GOLDEN = 1.32471795724474602596
_STEPS = (1.0 / _GOLDEN, 1.0 / _GOLDEN**2)
# Longest side squared by area: 2.3 in an equilateral triangle. In a longer one an even sequence, stretched
# along with it, comes to lie in rows with gaps between them.
_SLENDER = 6.0
_POINTS_TO_SPLIT = 4.0
_CANDIDATES = 16  # more than twice a triangle's points, as about half of the square lies in it


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Points on triangles: `face` (n,) which, `weights` (n, 3) its barycentric coordinates there."""

    face: NDArray[np.int64]
    weights: NDArray[np.float64]


def spread(corners: NDArray[np.float64], count: int, seed: int) -> Samples:
    """`count` points over triangles (f, 3, 3) whose area is not 0. Another seed shifts them."""
    pieces, face, inside = _split(corners, count)
    areas = _areas(pieces)
    order = morton(pieces.mean(axis=1))
    shares = _shares(areas[order], count)
    shifts = np.random.default_rng(seed).random((len(order), 2))
    rows = np.repeat(np.arange(len(order)), shares)
    weights = _triangle_points(shares, shifts)
    piece = order[rows]
    return Samples(face[piece], np.einsum("nk,nkj->nj", weights, inside[piece]))


def _areas(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas: NDArray[np.float64] = np.linalg.norm(crosses, axis=1) / 2.0
    return areas


def _split(
    corners: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Halve slender triangles across their longest side, while they have points enough to be worth it.

    Returns pieces (p, 3, 3), the face (p,) that each is of, and its corners' barycentric coordinates
    there, (p, 3, 3). A halving halves the points: there are at most count / 2 pieces more than faces.
    """
    per_area = count / float(_areas(corners).sum())
    done, pieces = [], (corners, np.arange(len(corners)), np.tile(np.eye(3), (len(corners), 1, 1)))
    while len(pieces[0]):
        sides = np.linalg.norm(np.roll(pieces[0], -1, axis=1) - pieces[0], axis=2)
        areas = _areas(pieces[0])
        bad = (areas * per_area >= _POINTS_TO_SPLIT) & (sides.max(axis=1) ** 2 > _SLENDER * areas)
        done.append(tuple(each[~bad] for each in pieces))
        corners_left, face_left, inside_left = (each[bad] for each in pieces)
        pieces = _halved(corners_left, face_left, inside_left, sides[bad].argmax(axis=1))
    first, second, third = (np.concatenate(each) for each in zip(*done, strict=True))
    return first, second, third


def _halved(
    corners: NDArray[np.float64],
    face: NDArray[np.int64],
    inside: NDArray[np.float64],
    longest: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    turn = (longest[:, None] + np.arange(3)) % 3  # the longest side becomes the first one
    halves = []
    for values in (corners, inside):
        a, b, c = np.moveaxis(np.take_along_axis(values, turn[..., None], axis=1), 1, 0)
        middle = (a + b) / 2.0
        halves.append(np.concatenate((np.stack((a, middle, c), 1), np.stack((middle, b, c), 1))))
    return halves[0], np.concatenate((face, face)), halves[1]


def _shares(areas: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """How many points each gets: its part of the running sum, so that rounding never adds up."""
    ends = np.cumsum(areas)
    borders = np.floor(ends / ends[-1] * count + 0.5).astype(np.int64)
    shares: NDArray[np.int64] = np.diff(borders, prepend=0)
    return shares


def _triangle_points(shares: NDArray[np.int64], shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Barycentric coordinates (n, 3) of so many points in each triangle, one triangle after the other.

    Of a sequence in the unit square those below its diagonal are kept, the first ones.
    """
    tries = np.where(shares > 0, 2 * shares + _CANDIDATES, 0)
    rows = np.repeat(np.arange(len(shares)), tries)
    index = np.arange(len(rows)) - np.repeat(np.cumsum(tries) - tries, tries)
    u, v = ((shifts[rows, axis] + index * _STEPS[axis]) % 1.0 for axis in (0, 1))
    below = u + v < 1.0
    rank = np.cumsum(below) - 1
    first = np.cumsum(np.bincount(rows[below], minlength=len(shares)))
    first = np.concatenate(([0], first[:-1]))
    kept = below & (rank - first[rows] < shares[rows])
    u, v = u[kept], v[kept]
    return np.stack((1.0 - u - v, u, v), axis=1)
