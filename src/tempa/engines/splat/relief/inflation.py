"""How thick a subject is, from its silhouette alone.

A rounded subject is the union of all balls that fit into its silhouette: exact for a sphere, a capsule and
a torus seen face on, and quiet on a ragged outline, as the small balls there hardly stick out of their
neighbours. (Poisson inflation, z = sqrt(h) with lap h = -4, is exact for the sphere only: it makes a
capsule sqrt(2) too thick.) A subject of straight edges is a plate with rounded rims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter

from tempa.engines.splat.raster.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAR = 1e12  # px^2: beyond every picture
FLAT_THICKNESS = 0.8  # of the widest inscribed radius: half of a plate's thickness
RIM_ROUNDING = 0.2  # of a plate's half thickness
DIRECTIONS = 180  # bins of one degree: an edge has a direction, not a sense
DIRECTION_SPREAD = 6  # degrees to either side that still count as the same direction
DIRECTION_APART = 20  # degrees that two directions differ at least
STRAIGHT = (
    0.62,
    0.82,
)  # share of the outline in its three main directions: from where to where it is a plate
SECOND = (0.12, 0.2)  # share of the second direction: a capsule has only one


@kernel
def lower_envelope(heights: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Along each row: out[i, j] = min over k of heights[i, k] + (j - k)^2.

    Felzenszwalb and Huttenlocher, "Distance Transforms of Sampled Functions" (2012): linear in the
    number of cells.
    """
    rows, columns = heights.shape
    places = np.empty(columns, np.int64)
    bounds = np.empty(columns + 1)
    for i in range(rows):
        row = heights[i]
        last = 0
        places[0] = 0
        bounds[0], bounds[1] = -np.inf, np.inf
        for j in range(1, columns):
            while True:
                k = places[last]
                meet = ((row[j] + j * j) - (row[k] + k * k)) / (2.0 * (j - k))
                if meet > bounds[last] or last == 0:
                    break
                last -= 1
            if meet <= bounds[last]:
                places[last] = j
            else:
                last += 1
                places[last] = j
                bounds[last] = meet
            bounds[last + 1] = np.inf
        at = 0
        for j in range(columns):
            while bounds[at + 1] < j:
                at += 1
            k = places[at]
            out[i, j] = row[k] + (j - k) * (j - k)


def envelope(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower envelope of paraboloids that stand on a grid: min over q of heights[q] + |p - q|^2."""
    along, across = np.empty_like(heights), np.empty(heights.shape[::-1])
    lower_envelope(heights, along)
    lower_envelope(np.ascontiguousarray(along.T), across)
    return np.ascontiguousarray(across.T)


def inner_distance(solid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far each cell's centre is from the outline, in cells; 0 outside."""
    padded = np.pad(solid, 1)  # what lies on the border has its outline there
    squares = envelope(np.where(padded, FAR, 0.0))[1:-1, 1:-1]
    # A centre next to the outline is half a cell from it, and a whole one from the next centre.
    return np.where(solid, np.sqrt(squares) - 0.5, 0.0)


def rounded(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the thickness, in cells, of the union of all balls in a silhouette of this inner distance."""
    inside = distance > 0.0
    squares = np.maximum(-envelope(np.where(inside, -(distance**2), FAR)), 0.0)
    # Squares are smooth where heights have the root's steep end: it is they that are smoothed.
    weights = gaussian_filter(inside.astype(np.float64), 1.0, truncate=3.0)
    smooth = gaussian_filter(np.where(inside, squares, 0.0), 1.0, truncate=3.0) / np.maximum(weights, 1e-9)
    return np.where(inside, np.sqrt(smooth), 0.0)


def flat(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the thickness, in cells, of a plate with rounded rims."""
    half = FLAT_THICKNESS * float(distance.max())
    in_rim = np.clip(distance / max(RIM_ROUNDING * half, 1e-9), 0.0, 1.0)
    return half * np.sqrt(1.0 - (1.0 - in_rim) ** 2)


def straightness(solid: NDArray[np.bool_]) -> float:
    """How much of an outline is straight edges in a few directions: 0 is a rounded subject, 1 a boxy one.

    The gradient of the smoothed silhouette adds up to the outline's length (coarea formula), so its
    directions, weighed by it, are those of the outline.
    """
    smooth = gaussian_filter(np.pad(solid, 4).astype(np.float32), max(1.5, len(solid) / 128))
    down, across = np.gradient(smooth)
    degrees = np.degrees(np.arctan2(down, across)) % DIRECTIONS
    bins = np.rint(degrees).astype(np.int64).ravel() % DIRECTIONS
    lengths = np.asarray(np.bincount(bins, np.hypot(down, across).ravel(), DIRECTIONS), np.float64)
    shares = lengths / max(float(lengths.sum()), 1e-12)
    first, second, third = _main_directions(shares)
    return _ramp(first + second + third, *STRAIGHT) * _ramp(second, *SECOND)


def _main_directions(shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """Shares of the three main directions, the greatest first."""
    found = []
    around = np.arange(DIRECTIONS)
    shares = shares.copy()
    for _ in range(3):
        shifts = range(-DIRECTION_SPREAD, DIRECTION_SPREAD + 1)
        windows = np.sum([np.roll(shares, shift) for shift in shifts], axis=0)
        best = int(np.argmax(windows))
        found.append(float(windows[best]))
        apart = np.abs((around - best + DIRECTIONS // 2) % DIRECTIONS - DIRECTIONS // 2)
        shares[apart <= DIRECTION_APART - DIRECTION_SPREAD] = 0.0
    return found[0], found[1], found[2]


def _ramp(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def boxiness(solid: NDArray[np.bool_], profile: str) -> float:
    """How much of a plate a subject is, 0 to 1. `profile`: `rounded`, `flat`, or `auto` by its outline."""
    fixed = {"rounded": 0.0, "flat": 1.0}.get(profile)
    return straightness(solid) if fixed is None else fixed


def half_thickness(solid: NDArray[np.bool_], boxy: float) -> NDArray[np.float64]:
    """Half the thickness in units of the grid's side, rounded and flat mixed by `boxy`."""
    distance = inner_distance(solid)
    thickness = np.zeros(solid.shape)
    if boxy < 1.0:
        thickness += (1.0 - boxy) * rounded(distance)
    if boxy > 0.0:
        thickness += boxy * flat(distance)
    return thickness / len(solid)
