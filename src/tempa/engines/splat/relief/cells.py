"""Where Gaussians go: a quadtree, fine where colour, outline or slope change, coarse elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.relief.plate import SHOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = 4  # cells of 1, 2, 4 and 8 grid cells a side
ALPHA_WEIGHT = 8.0  # beside the three channels of colour: an outline is what the eye sees first
SLOPE_WEIGHT = 0.004  # a bend of one (45 degrees) weighs as a colour step of 1/16


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """`n` square cells. Rows and columns of their centres are in grid cells (the first centre at 0.5).

    - `rows`, `columns`, `sizes` (n,) float64: grid cells.
    - `levels` (n,) int64, `places` (n,) int64: which level, and where in its array, flat.
    """

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    sizes: NDArray[np.float64]
    levels: NDArray[np.int64]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)

    def take(self, which: NDArray[np.int64]) -> Cells:
        """Those of a list of indices, in its order."""
        return Cells(*(getattr(self, each.name)[which] for each in fields(Cells)))

    def mean(self, values: Pyramid) -> NDArray[np.float64]:
        """Of some values over each cell: (n, channels)."""
        out = np.empty((len(self), values.channels))
        for level in range(LEVELS):
            mine = self.levels == level
            out[mine] = values.means(level)[self.places[mine]]
        return out


class Pyramid:
    """Weighted sums of values (side, side, c) over the cells of every level, and their squared deviations."""

    def __init__(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        weighted = values * weights[..., None]
        squares = np.einsum("ijc,ijc->ij", weighted, values)
        self.channels = values.shape[-1]
        self.weights, self.sums, self.squares = [weights], [weighted], [squares]
        for _ in range(LEVELS - 1):
            self.weights.append(pooled(self.weights[-1]))
            self.sums.append(pooled(self.sums[-1]))
            self.squares.append(pooled(self.squares[-1]))

    def means(self, level: int) -> NDArray[np.float64]:
        """(cells, c), flat; zeros where nothing weighs."""
        weights = np.maximum(self.weights[level], 1e-12).reshape(-1, 1)
        means: NDArray[np.float64] = self.sums[level].reshape(-1, self.channels) / weights
        return means

    def deviations(self, level: int) -> NDArray[np.float64]:
        """Sum of squared distances from the cell's mean, over channels: (cells a side, cells a side)."""
        sums, weights = self.sums[level], np.maximum(self.weights[level], 1e-12)
        spread = self.squares[level] - np.einsum("ijc,ijc->ij", sums, sums) / weights
        deviations: NDArray[np.float64] = np.maximum(spread, 0.0)
        return deviations


def pooled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over 2 x 2."""
    pairs = values[0::2] + values[1::2]
    sums: NDArray[np.float64] = pairs[:, 0::2] + pairs[:, 1::2]
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """In which order to split a grid's cells, and how many each split adds; `roots` stand at first."""

    shown: list[NDArray[np.bool_]]  # by level: which cells have something to show
    levels: NDArray[np.int64]
    places: NDArray[np.int64]
    gains: NDArray[np.int64]
    roots: int
    weights: NDArray[np.float64]  # of the coarsest level's cells: how much they show


def splits(alpha: NDArray[np.float64], *spreads: tuple[float, Pyramid]) -> Splits:
    """Judge every cell by what it would flatten: weighted squared deviations of some values."""
    shown = _shown(alpha)
    loss = [np.zeros(shown[0].shape)]
    for level in range(1, LEVELS):
        own = sum(weight * values.deviations(level) for weight, values in spreads)
        # A parent never comes after its child: a split list that is cut anywhere is a tree.
        loss.append(np.maximum(own, _greatest(loss[-1])))
    levels, places, losses, gains = [], [], [], []
    for level in range(LEVELS - 1, 0, -1):
        where = np.flatnonzero(shown[level])
        children = pooled(shown[level - 1].astype(np.float64)).ravel()[where]
        levels.append(np.full(len(where), level))
        places.append(where)
        losses.append(loss[level].ravel()[where])
        gains.append(children.astype(np.int64) - 1)
    order = np.argsort(-np.concatenate(losses), kind="stable")  # coarse before fine among equals
    return Splits(
        shown,
        np.concatenate(levels)[order],
        np.concatenate(places)[order],
        np.concatenate(gains)[order],
        int(np.count_nonzero(shown[-1])),
        _coarsest(alpha).ravel(),
    )


def leaves(found: Splits, budget: int) -> Cells:
    """The cells that stand when splits are made in order as long as the budget lasts.

    When it does not last for the roots, those stand that show most; when there is nothing left to split,
    the smallest are quartered until it is used up.
    """
    total = found.roots + np.cumsum(found.gains)
    cut = int(np.searchsorted(total, budget, side="right"))
    split = [np.zeros(shown.size, np.bool_) for shown in found.shown]
    for level in range(1, LEVELS):
        split[level][found.places[:cut][found.levels[:cut] == level]] = True
    cells = _standing(found.shown, split)
    if len(cells) > budget:
        return cells.take(np.sort(np.argsort(-found.weights[cells.places], kind="stable")[:budget]))
    if cut < len(found.gains):
        return cells
    while len(cells) and budget - len(cells) >= 3:
        cells = _quartered(cells, (budget - len(cells)) // 3)
    return cells


def _quartered(cells: Cells, most: int) -> Cells:
    """The first `most` cells as four each: they look up the same values, a quarter as wide apart."""
    count = min(most, len(cells))
    parts = [cells.take(np.arange(count, len(cells)))]
    first = cells.take(np.arange(count))
    for down in (-0.25, 0.25):
        for right in (-0.25, 0.25):
            rows, columns = first.rows + down * first.sizes, first.columns + right * first.sizes
            parts.append(Cells(rows, columns, 0.5 * first.sizes, first.levels, first.places))
    return Cells(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Cells)))


def _standing(shown: list[NDArray[np.bool_]], split: list[NDArray[np.bool_]]) -> Cells:
    parts = []
    for level, cells in enumerate(shown):
        side = len(cells)
        here = cells.ravel() & ~split[level]
        if level + 1 < LEVELS:
            parents = split[level + 1].reshape(side // 2, side // 2)
            here &= parents.repeat(2, axis=0).repeat(2, axis=1).ravel()
        places = np.flatnonzero(here)
        size = float(1 << level)
        rows, columns = (places // side + 0.5) * size, (places % side + 0.5) * size
        parts.append((rows, columns, np.full(len(places), size), np.full(len(places), level), places))
    return Cells(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _shown(alpha: NDArray[np.float64]) -> list[NDArray[np.bool_]]:
    shown = [alpha >= SHOWN]
    for _ in range(LEVELS - 1):
        shown.append(pooled(shown[-1].astype(np.float64)) > 0.0)
    return shown


def _coarsest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    for _ in range(LEVELS - 1):
        values = pooled(values)
    return values


def _greatest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    pairs = np.maximum(values[0::2], values[1::2])
    most: NDArray[np.float64] = np.maximum(pairs[:, 0::2], pairs[:, 1::2])
    return most
