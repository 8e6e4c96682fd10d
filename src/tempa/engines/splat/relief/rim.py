"""The rim: a wall along the outline that closes the seam between front and back.

Half a cell in, a ball of radius R already stands sqrt(R) high, and a plate all of its height: without a
wall, what is seen from the side is a slit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import maximum_filter

from tempa.engines.splat.gaussians import of_colors
from tempa.engines.splat.relief.discs import SPREAD, STRETCH_MAX, THIN, quaternions
from tempa.engines.splat.relief.surface import gradients, outward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.relief.plate import Plate
    from tempa.engines.splat.relief.surface import Surface

OPACITY = 0.98
LOW = 4.0  # cells: a wire or a leaf's tip is closed by the sheets' own discs
HARD_WINDOW = 5  # cells: within half of it a hard edge has become solid
HARD = (0.8, 0.98)  # of alpha there: a puff of smoke has no wall
TALL = 1.5  # times as tall as wide: along the wall's height its colour does not change
INSET = 1.0  # cells: a wall's Gaussians are as wide as a pixel, and would be seen before the outline
COLOR_INSET = 2.5  # cells
BULGE = 0.7  # of the way to the ray that touches the edge
GROWTH = 1.25  # from one try of a stone's size to the next


@dataclass(frozen=True, slots=True, eq=False)
class Posts:
    """The outline as `n` upright posts, next to one another.

    - `rows`, `columns` (n,): grid cells, the first centre at 0.5.
    - `low`, `high` (n,): z of the back's edge and the front's, in units of the grid's side.
    - `low_nearness`, `high_nearness` (n,): of those edges, as `Sheet` has it.
    - `normals` (n, 2): outward, to the right and up, of unit length.
    - `widths` (n,): grid cells along the outline.
    - `bulges` (n,): how far the wall's middle stands out, in units of the grid's side.
    - `colors` (n, 3): of the subject there. `alpha` (n,): of the wall.
    """

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    low_nearness: NDArray[np.float64]
    high_nearness: NDArray[np.float64]
    normals: NDArray[np.float64]
    widths: NDArray[np.float64]
    bulges: NDArray[np.float64]
    colors: NDArray[np.float64]
    alpha: NDArray[np.float64]

    @property
    def heights(self) -> NDArray[np.float64]:
        """In units of the grid's side."""
        return self.high - self.low


def rim(plate: Plate, surface: Surface, budget: int) -> Gaussians:
    """The wall along the outline, from the back's edge to the front's: at most `budget` Gaussians."""
    edge = outline(plate, surface)
    size = 1.0
    while True:
        posts = merged(edge, size, plate.side)
        counts = np.ceil(posts.heights * plate.side / (TALL * size)).astype(np.int64)
        if counts.sum() <= budget:
            return _built(posts, counts, plate.side)
        size *= GROWTH


def outline(plate: Plate, surface: Surface) -> Posts:
    """A post for every cell along the outline where there is a height to close."""
    across, up = outward(surface.solid)
    length = np.hypot(across, up)
    hard = np.clip((maximum_filter(plate.alpha, HARD_WINDOW) - HARD[0]) / (HARD[1] - HARD[0]), 0.0, 1.0)
    at = np.nonzero((length > 0.0) & (surface.thickness * plate.side >= LOW) & (hard > 0.0))
    normals = np.stack((across[at], up[at]), axis=1) / length[at][:, None]
    front, back = surface.front, surface.back
    slopes = _steepness(surface)[at]
    # Set in by so much, the wall reaches the sheets so much farther up and down.
    reach = INSET * np.minimum(slopes, STRETCH_MAX) / plate.side
    return Posts(
        rows=at[0] + 0.5 + INSET * normals[:, 1],
        columns=at[1] + 0.5 - INSET * normals[:, 0],
        low=back.heights[at] - reach,
        high=front.heights[at] + reach,
        low_nearness=back.nearness[at] + (2.0 * surface.inward[at] - 1.0) * reach / surface.distance,
        high_nearness=front.nearness[at] - reach / surface.distance,
        normals=normals,
        widths=1.0 / np.maximum(np.abs(normals).max(axis=1, initial=0.0), 0.5),  # a diagonal step is longer
        bulges=_bulges(plate.side, surface, at, normals, slopes),
        colors=_inner_colors(plate, surface, at, normals),
        alpha=hard[at].astype(np.float64),
    )


def _inner_colors(
    plate: Plate, surface: Surface, at: tuple[NDArray[Any], ...], normals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The subject's colours a little way in: on the outline a careless cut has some background left."""
    last = plate.side - 1
    rows = np.clip(at[0] + np.rint(COLOR_INSET * normals[:, 1]).astype(np.int64), 0, last)
    columns = np.clip(at[1] - np.rint(COLOR_INSET * normals[:, 0]).astype(np.int64), 0, last)
    inside = surface.solid[rows, columns]
    rows, columns = np.where(inside, rows, at[0]), np.where(inside, columns, at[1])
    return plate.colors[rows, columns].astype(np.float64)


def _steepness(surface: Surface) -> NDArray[np.float64]:
    across, up = gradients(surface.front.heights, surface.solid)
    steepness: NDArray[np.float64] = np.hypot(across, up)
    return steepness


def _bulges(
    side: int,
    surface: Surface,
    at: tuple[NDArray[Any], ...],
    normals: NDArray[np.float64],
    slopes: NDArray[np.float64],
) -> NDArray[np.float64]:
    """How far a round body goes on beyond the edge that the camera sees, until its rays touch it.

    Less far than the ray through the edge, or it would show in the picture; not at all where the front ends
    level, or where the wall faces the axis, as in a hole. A plate's wall is straight.
    """
    round_off = (1.0 - surface.boxy) * np.clip(slopes - 1.0, 0.0, 1.0)
    x, y = (at[1] + 0.5) / side - 0.5, 0.5 - (at[0] + 0.5) / side
    out = np.maximum(normals[:, 0] * x + normals[:, 1] * y, 0.0)
    bulges: NDArray[np.float64] = BULGE * round_off * out * 0.5 * surface.thickness[at] / surface.distance
    return bulges


def merged(posts: Posts, size: float, side: int) -> Posts:
    """One post for all in a block of `size` cells that face about the same way."""
    if size <= 1.0 or not len(posts.rows):
        return posts
    blocks = int(side / size) + 1
    facing = np.floor(np.arctan2(posts.normals[:, 1], posts.normals[:, 0]) / (np.pi / 2.0) + 0.5) % 4.0
    place = (posts.rows // size).astype(np.int64) * blocks + (posts.columns // size).astype(np.int64)
    _, which, counts = np.unique(place * 4 + facing.astype(np.int64), return_inverse=True, return_counts=True)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.bincount(which, values, len(counts))
        means: NDArray[np.float64] = sums / counts
        return means

    def means(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([mean(column) for column in values.T], axis=1)

    normals = means(posts.normals)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    return Posts(
        rows=mean(posts.rows),
        columns=mean(posts.columns),
        low=mean(posts.low),
        high=mean(posts.high),
        low_nearness=mean(posts.low_nearness),
        high_nearness=mean(posts.high_nearness),
        normals=normals,
        widths=np.minimum(mean(posts.widths) * counts, size * np.sqrt(2.0)),
        bulges=mean(posts.bulges),
        colors=means(posts.colors),
        alpha=mean(posts.alpha),
    )


def _built(posts: Posts, counts: NDArray[np.int64], side: int) -> Gaussians:
    which = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(which)) - (np.cumsum(counts) - counts)[which]
    cell, stone = 1.0 / side, (posts.heights / np.maximum(counts, 1))[which]
    up_to = (number + 0.5) / counts[which]
    nearness = posts.low_nearness[which] * (1.0 - up_to) + posts.high_nearness[which] * up_to
    bulge = posts.bulges[which] * (1.0 - (2.0 * up_to - 1.0) ** 2)
    x = (posts.columns[which] * cell - 0.5) * nearness + bulge * posts.normals[which, 0]
    y = (0.5 - posts.rows[which] * cell) * nearness + bulge * posts.normals[which, 1]
    z = posts.low[which] + stone * (number + 0.5)
    across = SPREAD * np.maximum(posts.widths[which], 1.0) * cell
    scales = np.stack((SPREAD * stone, across, np.full(len(which), THIN * cell)), axis=1)
    opacities = OPACITY * posts.alpha[which]
    axes = _upright(posts.normals[which])
    return of_colors(np.stack((x, y, z), axis=1), scales, quaternions(axes), opacities, posts.colors[which])


def _upright(normals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Axes (n, 3, 3), as columns, of discs in the wall: along z, along the outline, outward."""
    axes = np.zeros((len(normals), 3, 3))
    axes[:, 2, 0] = 1.0
    axes[:, 0, 1], axes[:, 1, 1] = -normals[:, 1], normals[:, 0]
    axes[:, 0, 2], axes[:, 1, 2] = -normals[:, 0], -normals[:, 1]
    return axes
