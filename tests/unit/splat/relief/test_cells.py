"""The quadtree: its budget, its coverage, and where it is fine."""

from __future__ import annotations

import numpy as np
import pytest

from tempa.engines.splat.relief.cells import Pyramid, leaves, splits

SIDE = 64


def half_noise() -> Pyramid:
    """Level on the left, noise on the right."""
    values = np.zeros((SIDE, SIDE, 3))
    values[:, SIDE // 2 :] = np.random.default_rng(3).random((SIDE, SIDE // 2, 3))
    return Pyramid(values, np.ones((SIDE, SIDE)))


def blob() -> np.ndarray:
    alpha = np.zeros((SIDE, SIDE))
    alpha[5:50, 9:60] = 1.0
    return alpha


@pytest.mark.parametrize("budget", [100, 777, 1500])
def test_budget_is_kept_and_used(budget: int) -> None:
    found = leaves(splits(np.ones((SIDE, SIDE)), (1.0, half_noise())), budget)
    assert budget - 3 <= len(found) <= budget


def test_every_place_that_shows_has_one_cell() -> None:
    alpha = blob()
    found = leaves(splits(alpha, (1.0, half_noise())), 900)
    covered = np.zeros((SIDE, SIDE), np.int64)
    for row, column, size in zip(found.rows, found.columns, found.sizes.astype(int), strict=True):
        top, left = int(row - size / 2), int(column - size / 2)
        covered[top : top + size, left : left + size] += 1
    assert covered.max() == 1
    assert (covered[alpha > 0] == 1).all()


def test_rounding_leaves_no_cell_twice() -> None:
    """Where there is next to nothing to lose, rounding alone says which of parent and child has more."""
    values = 1e7 + 1e-3 * np.random.default_rng(3).random((SIDE, SIDE, 3))
    found = leaves(splits(np.ones((SIDE, SIDE)), (1.0, Pyramid(values, np.ones((SIDE, SIDE))))), 900)
    assert (found.sizes**2).sum() == SIDE**2


def test_fine_where_something_happens() -> None:
    found = leaves(splits(np.ones((SIDE, SIDE)), (1.0, half_noise())), 1500)
    left = found.columns < SIDE / 2
    assert found.sizes[left].min() == 8.0
    assert np.median(found.sizes[~left]) == 1.0


def test_means_are_weighted() -> None:
    values = np.zeros((SIDE, SIDE, 1))
    values[0, 0] = 4.0
    weights = np.ones((SIDE, SIDE))
    weights[0, 0] = 3.0
    found = leaves(splits(np.ones((SIDE, SIDE)), (1.0, Pyramid(values, weights))), 1)
    first = int(np.flatnonzero((found.rows == 4.0) & (found.columns == 4.0))[0])
    assert found.mean(Pyramid(values, weights))[first, 0] == pytest.approx(12.0 / 66.0)


def test_budget_holds_below_the_coarsest_cells() -> None:
    """Those that show most stay."""
    alpha = np.full((SIDE, SIDE), 0.2)
    alpha[:8, :16] = 1.0
    found = leaves(splits(alpha, (1.0, half_noise())), 2)
    assert found.rows.tolist() == [4.0, 4.0]
    assert sorted(found.columns) == [4.0, 12.0]


def test_smallest_cells_are_quartered_when_there_is_room() -> None:
    alpha = np.zeros((SIDE, SIDE))
    alpha[10, 20:30] = 1.0
    found = leaves(splits(alpha, (1.0, half_noise())), 100)
    assert 97 < len(found) <= 100
    assert (found.sizes**2).sum() == pytest.approx(10.0)
    assert len({*zip(found.rows, found.columns, strict=True)}) == len(found)
