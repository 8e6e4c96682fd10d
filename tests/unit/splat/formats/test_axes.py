"""Half a turn about x: positions, ellipsoids and spherical harmonics go along."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import sph_harm_y

from tempa.engines.splat.formats.axes import between, turned
from tests.unit.splat.formats.clouds import cloud, covariances

HALF_TURN = np.diag([1.0, -1.0, -1.0])


def basis(directions: np.ndarray, degree: int) -> np.ndarray:
    """Real spherical harmonics with the Condon-Shortley phase, by SciPy's complex ones."""
    x, y, z = directions.T
    theta, phi = np.arccos(z), np.arctan2(y, x)
    columns = []
    for order in range(degree + 1):
        for m in range(-order, order + 1):
            value = sph_harm_y(order, abs(m), theta, phi)
            part = value.imag if m < 0 else value.real
            columns.append(part * (np.sqrt(2) if m else 1))
    return np.stack(columns, axis=1)


def directions() -> np.ndarray:
    points = np.random.default_rng(3).normal(size=(50, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def test_the_basis_is_that_of_the_3dgs_reference() -> None:
    x, y, z = (points := directions()).T
    found = basis(points, 3)
    told = {
        0: 0.28209479177387814, 1: -0.4886025119029199 * y, 2: 0.4886025119029199 * z,
        3: -0.4886025119029199 * x, 4: 1.0925484305920792 * x * y, 6: 0.31539156525252005 * (3 * z * z - 1),
        9: -0.5900435899266435 * y * (3 * x * x - y * y), 13: -0.4570457994644658 * x * (5 * z * z - 1),
    }  # fmt: skip

    for column, values in told.items():
        assert found[:, column] == pytest.approx(values * np.ones_like(x))


@pytest.mark.parametrize("degree", range(4))
def test_a_turned_cloud_shows_each_colour_in_the_turned_direction(degree: int) -> None:
    gaussians = cloud(5, degree)
    points = directions()

    before = np.einsum("dk,nkc->ndc", basis(points, degree), gaussians.harmonics)
    after = np.einsum("dk,nkc->ndc", basis(points @ HALF_TURN.T, degree), turned(gaussians).harmonics)

    assert after == pytest.approx(before, abs=1e-5)


def test_ellipsoids_are_turned() -> None:
    gaussians = cloud(50)
    before = covariances(gaussians.scales, gaussians.rotations)
    after = covariances(turned(gaussians).scales, turned(gaussians).rotations)

    assert after == pytest.approx(HALF_TURN @ before @ HALF_TURN.T, abs=1e-9)


def test_positions_are_turned() -> None:
    gaussians = cloud(50)

    assert turned(gaussians).positions == pytest.approx(gaussians.positions @ HALF_TURN.T)


def test_twice_is_back() -> None:
    gaussians = cloud(20, 3)
    again = turned(turned(gaussians))

    for name in ("positions", "scales", "rotations", "opacities", "harmonics"):
        assert np.array_equal(getattr(again, name), getattr(gaussians, name)), name


def test_the_frame_itself_needs_no_turn() -> None:
    gaussians = cloud(3)

    assert between("RUB", gaussians) is gaussians
