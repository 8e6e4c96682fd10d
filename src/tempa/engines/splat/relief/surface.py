"""The closed surface over a grid: a front that the camera sees, and its mirror image behind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter

from tempa.engines.splat.raster.jit import kernel
from tempa.engines.splat.relief.spreading import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

HALF_DEPTH_MAX = 0.47  # units of the frame: the subject stays in its cube
RAY_ROUNDS = 8  # at the outline two meetings become one, and steps grow small
REACH_MAX = 0.6  # of the way to the camera
DEPTH_OUTLIERS = (2.0, 98.0)  # percentiles of a depth image that its range is taken from


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """One side of a body over a square grid, in units of its side.

    What the picture shows at (x, y) of the plane z = 0 lies at (x * nearness, y * nearness, height): on its
    ray through the camera when nearness is 1 - height / distance.

    - `heights`, `nearness` (side, side) float64.
    """

    heights: NDArray[np.float64]
    nearness: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """A body over a square grid; the camera is at (0, 0, `distance`), in units of the grid's side.

    `front` is what the picture shows; beyond the outline it goes on level. `back` is its mirror image,
    straight behind, but where the outline faces the camera's axis (around a hole): there it keeps to the
    rays, or it would stand in the hole.
    """

    front: Sheet
    back: Sheet
    solid: NDArray[np.bool_]
    inward: NDArray[np.float64]  # 0 to 1: how much of the outline nearby faces the axis
    distance: float
    boxy: float  # 0 a rounded body, 1 a plate

    @property
    def thickness(self) -> NDArray[np.float64]:
        """From the back to the front."""
        return self.front.heights - self.back.heights


def camera_distance(field_of_view_degrees: float, share: float) -> float:
    """From where a square of side 1 at the origin fills this share of the longer side of a picture.

    `field_of_view_degrees`: along that side. What is small in its picture was seen from afar.
    """
    return 0.5 / (share * math.tan(math.radians(field_of_view_degrees) / 2.0))


def half_depth_max(distance: float) -> float:
    """How far before and behind the plane z = 0 a body may reach: a wide lens stands close before it."""
    return min(HALF_DEPTH_MAX, REACH_MAX * distance)


def surface(
    thickness: NDArray[np.float64],
    solid: NDArray[np.bool_],
    distance: float,
    boxy: float,
    middle: NDArray[np.float64] | None = None,
) -> Surface:
    """Two sheets around a middle: of the plane z = 0, or bent so that the front is a depth image's."""
    most = half_depth_max(distance)
    half = np.clip(thickness, 0.0, most)
    front = half if middle is None else np.clip(middle + half, -most, most)
    back = np.maximum(front - 2.0 * half, -most)
    inward = _facing_axis(solid)
    # What a soft edge shows beyond the outline goes on from the front's edge; in the plane z = 0 it would
    # hang in the air beside the body, where other views see it.
    beyond = spread(front[..., None], solid.astype(np.float64))[..., 0]
    front = np.where(solid, front, beyond)
    on_ray = 1.0 - front / distance
    return Surface(
        Sheet(front, on_ray),
        Sheet(back, on_ray + inward * ((1.0 - back / distance) - on_ray)),
        solid,
        inward,
        distance,
        boxy,
    )


def outward(solid: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Away from the subject, to the right and up, at its cells along the outline; zero elsewhere."""
    padded = np.pad(solid, 1).astype(np.float64)
    left, right = padded[1:-1, :-2], padded[1:-1, 2:]
    above, below = padded[:-2, 1:-1], padded[2:, 1:-1]
    falling, rising = padded[:-2, :-2] - padded[2:, 2:], padded[2:, :-2] - padded[:-2, 2:]
    across = left - right + 0.5 * (falling + rising)
    up = below - above + 0.5 * (rising - falling)
    edge = solid & (left + right + above + below < 4.0)
    return np.where(edge, across, 0.0), np.where(edge, up, 0.0)


def _facing_axis(solid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """0 to 1 over the grid: how much of the outline nearby faces the camera's axis."""
    side = len(solid)
    across, up = outward(solid)
    place = (np.arange(side) + 0.5) / side - 0.5
    away = across * place[None, :] - up * place[:, None]
    edge = (across != 0.0) | (up != 0.0)
    inward = np.where(away < 0.0, 1.0, 0.0)
    return np.asarray(spread(inward[..., None], edge.astype(np.float64))[..., 0], np.float64)


def middle_of(
    depth: NDArray[np.float64], thickness: NDArray[np.float64], solid: NDArray[np.bool_], scale: float
) -> NDArray[np.float64]:
    """The middle between the sheets whose front is a depth image, nearer is greater.

    `scale`: how deep the image's range is, in units of the grid's side.
    """
    low, high = np.percentile(depth[solid], DEPTH_OUTLIERS)
    if high <= low:
        return np.zeros_like(depth)
    near = np.clip((depth - low) / (high - low), 0.0, 1.0)
    # Outside the subject a depth image tells of the background: its edge must not pull the rim away.
    weights = gaussian_filter(solid.astype(np.float64), 1.0)
    smooth = gaussian_filter(np.where(solid, near, 0.0), 1.0) / np.maximum(weights, 1e-9)
    return np.where(solid, (smooth - 0.5) * scale - thickness, 0.0)


@kernel
def _on_rays(squares: NDArray[np.float64], distance: float, shrink: float, out: NDArray[np.float64]) -> None:
    side = len(squares)
    for i in range(side):
        for j in range(side):
            if squares[i, j] <= 0.0:
                continue
            across, down = j + 0.5 - 0.5 * side, i + 0.5 - 0.5 * side
            z = out[i, j]
            for _ in range(RAY_ROUNDS):
                scale = (1.0 - z / distance) / shrink
                column, row = across * scale + 0.5 * side - 0.5, down * scale + 0.5 * side - 0.5
                column, row = min(max(column, 0.0), side - 1.001), min(max(row, 0.0), side - 1.001)
                j0, i0 = int(column), int(row)
                u, v = column - j0, row - i0
                upper = squares[i0, j0] * (1.0 - u) + squares[i0, j0 + 1] * u
                lower = squares[i0 + 1, j0] * (1.0 - u) + squares[i0 + 1, j0 + 1] * u
                z = shrink * math.sqrt(upper * (1.0 - v) + lower * v)
            out[i, j] = z


def on_rays(thickness: NDArray[np.float64], distance: float, straight: float) -> NDArray[np.float64]:
    """Where each pixel's ray meets a body of this half thickness (units of the side), as z.

    What a picture shows at a place lies nearer to the camera than the plane z = 0, and so nearer to the
    axis: z = thickness(place * (1 - z / distance)), solved by iteration from the thickest. Without it a
    sphere comes out as a lens. A ball's outline is seen where rays touch it, a little before its middle:
    `straight` (0 to 1) says how much less of that there is.
    """
    widest = (1.0 - straight) * float(thickness.max())
    shrink = 1.0 / math.hypot(1.0, widest / distance)
    out = np.where(thickness > 0.0, float(thickness.max()), 0.0)
    _on_rays(thickness**2, distance, shrink, out)
    return out


@kernel
def slopes(
    heights: NDArray[np.float64],
    solid: NDArray[np.bool_],
    across: NDArray[np.float64],
    up: NDArray[np.float64],
) -> None:
    """Differences of heights per cell, to the right and up, that never reach across the outline."""
    rows, columns = heights.shape
    for i in range(rows):
        for j in range(columns):
            if not solid[i, j]:
                continue
            left = j - 1 if j > 0 and solid[i, j - 1] else j
            right = j + 1 if j + 1 < columns and solid[i, j + 1] else j
            above = i - 1 if i > 0 and solid[i - 1, j] else i
            below = i + 1 if i + 1 < rows and solid[i + 1, j] else i
            if right > left:
                across[i, j] = (heights[i, right] - heights[i, left]) / (right - left)
            if below > above:
                up[i, j] = (heights[above, j] - heights[below, j]) / (below - above)


def gradients(
    heights: NDArray[np.float64], solid: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slopes to the right and up, heights in units of the grid's side."""
    across, up = np.zeros_like(heights), np.zeros_like(heights)
    slopes(heights, solid, across, up)
    side = len(heights)
    return across * side, up * side
