"""Leaving Gaussians out: by value and by place, in order."""

from __future__ import annotations

import numpy as np
import pytest

from tempa.engines.splat.edit import keep
from tempa.engines.splat.formats.order import codes, morton
from tests.unit.splat.formats.clouds import cloud


def test_what_is_whole_is_handed_on_untouched() -> None:
    gaussians = cloud(20)

    assert keep.finite(gaussians) is gaussians


@pytest.mark.parametrize("array", ["positions", "scales", "rotations", "opacities", "harmonics"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_broken_ones_go(array: str, value: float) -> None:
    gaussians = cloud(20, 1)
    getattr(gaussians, array)[7] = value

    found = keep.finite(gaussians)

    assert np.array_equal(found.positions, np.delete(cloud(20, 1).positions, 7, axis=0))


def test_faint_ones_go_and_the_bound_stays() -> None:
    gaussians = cloud(3)
    gaussians.opacities[:] = (0.1, 0.09999, 0.5)

    assert keep.opaque(gaussians, 0.1).opacities == pytest.approx([0.1, 0.5])


@pytest.mark.parametrize(
    ("least", "most", "left"), [(None, None, 3), (0.01, None, 2), (None, 0.02, 2), (0.02, 0.02, 1), (1, 2, 0)]
)
def test_sizes_go_by_the_largest_scale(least: float | None, most: float | None, left: int) -> None:
    gaussians = cloud(3)
    gaussians.scales[:] = [[1e-5, 0.005, 1e-5], [0.02, 1e-5, 1e-5], [1e-5, 1e-5, 0.04]]

    assert len(keep.sized(gaussians, least, most)) == left


def test_a_box_keeps_what_is_within_it() -> None:
    gaussians = cloud(500)
    found = keep.in_box(gaussians, (-0.1, -0.2, 0.0), (0.3, 0.2, 0.5))

    expected = [
        place for place in gaussians.positions.tolist()
        if -0.1 <= place[0] <= 0.3 and -0.2 <= place[1] <= 0.2 and 0.0 <= place[2] <= 0.5
    ]  # fmt: skip
    assert found.positions.tolist() == expected
    assert 0 < len(expected) < 500


def test_a_sphere_keeps_what_is_within_it() -> None:
    gaussians = cloud(500)
    found = keep.in_sphere(gaussians, (0.1, 0.0, 0.0), 0.3)

    expected = [p for p in gaussians.positions.tolist() if np.hypot(np.hypot(p[0] - 0.1, p[1]), p[2]) <= 0.3]
    assert found.positions.tolist() == expected
    assert 0 < len(expected) < 500


@pytest.mark.parametrize(("degree", "left"), [(0, 1), (1, 4), (2, 9), (3, 16)])
def test_harmonics_are_cut_at_a_degree(degree: int, left: int) -> None:
    gaussians = cloud(5, 3)

    assert np.array_equal(keep.of_degree(gaussians, degree).harmonics, gaussians.harmonics[:, :left])


def test_what_has_fewer_harmonics_stays() -> None:
    gaussians = cloud(5, 1)

    assert keep.of_degree(gaussians, 2) is gaussians


def test_morton_codes_take_the_axes_in_turns() -> None:
    corners = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], np.float32)

    assert morton(corners).tolist() == list(range(8))
    assert codes(corners)[-1] == (1 << 63) - 1


def test_neighbours_along_the_curve_are_near() -> None:
    positions = cloud(4000).positions

    def steps(order: np.ndarray) -> float:
        return float(np.linalg.norm(np.diff(positions[order], axis=0), axis=1).mean())

    assert steps(morton(positions)) < 0.15 * steps(np.arange(4000))
