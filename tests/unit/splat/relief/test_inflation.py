"""Thickness from a silhouette: against closed forms, and against doing it the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from tempa.engines.splat.relief import inflation

SIDE = 160


def place() -> tuple[np.ndarray, np.ndarray]:
    line = np.arange(SIDE) + 0.5 - SIDE / 2
    return line[None, :], line[:, None]


def disc(radius: float) -> np.ndarray:
    x, y = place()
    solid: np.ndarray = np.hypot(x, y) < radius
    return solid


def capsule(radius: float, half_length: float) -> np.ndarray:
    x, y = place()
    solid: np.ndarray = np.hypot(np.maximum(np.abs(x) - half_length, 0.0), y) < radius
    return solid


def ring(middle: float, radius: float) -> np.ndarray:
    x, y = place()
    solid: np.ndarray = np.abs(np.hypot(x, y) - middle) < radius
    return solid


def rectangle(across: float, down: float) -> np.ndarray:
    x, y = place()
    solid: np.ndarray = (np.abs(x) < across) & (np.abs(y) < down)
    return solid


def angle() -> np.ndarray:
    x, y = place()
    arms = (np.abs(y - 45) < 15) & (np.abs(x) < 60)
    solid: np.ndarray = arms | ((np.abs(x + 45) < 15) & (y < 60) & (y > -60))
    return solid


def test_envelope_is_the_least_over_all_places() -> None:
    heights = np.random.default_rng(1).normal(0.0, 30.0, (13, 13))
    rows, columns = np.indices(heights.shape)
    slow = np.empty_like(heights)
    for i in range(13):
        for j in range(13):
            slow[i, j] = (heights + (rows - i) ** 2 + (columns - j) ** 2).min()
    np.testing.assert_allclose(inflation.envelope(heights), slow, rtol=1e-12, atol=1e-9)


def test_distance_is_that_of_scipy() -> None:
    solid = np.random.default_rng(2).random((70, 70)) > 0.05
    padded = np.pad(solid, 1)
    expected = np.where(solid, distance_transform_edt(padded)[1:-1, 1:-1] - 0.5, 0.0)
    np.testing.assert_allclose(inflation.inner_distance(solid), expected, atol=1e-9)


def test_disc_becomes_a_ball() -> None:
    x, y = place()
    solid = disc(60.0)
    found = inflation.half_thickness(solid, 0.0) * SIDE
    true = np.sqrt(np.maximum(60.0**2 - x**2 - y**2, 0.0))
    inner = disc(48.0)
    assert np.abs(found - true)[inner].max() < 1.5


def test_capsule_is_as_thick_as_it_is_wide() -> None:
    """Poisson inflation makes it sqrt(2) times as thick."""
    found = inflation.half_thickness(capsule(25.0, 45.0), 0.0) * SIDE
    assert found[SIDE // 2, SIDE // 2] == pytest.approx(25.0, abs=1.0)


def test_ring_becomes_a_torus() -> None:
    x, y = place()
    found = inflation.half_thickness(ring(48.0, 20.0), 0.0) * SIDE
    true = np.sqrt(np.maximum(20.0**2 - (np.hypot(x, y) - 48.0) ** 2, 0.0))
    inner = ring(48.0, 16.0)
    assert np.abs(found - true)[inner].max() < 1.5


def test_plate_is_level_inside() -> None:
    found = inflation.half_thickness(rectangle(60.0, 40.0), 1.0) * SIDE
    inner = rectangle(45.0, 25.0)
    assert np.ptp(found[inner]) < 1e-9
    assert found[inner][0] == pytest.approx(inflation.FLAT_THICKNESS * 40.0, rel=0.05)


@pytest.mark.parametrize(
    ("solid", "boxy"),
    [
        pytest.param(rectangle(60.0, 40.0), True, id="rectangle"),
        pytest.param(angle(), True, id="angle"),
        pytest.param(disc(60.0), False, id="disc"),
        pytest.param(capsule(25.0, 45.0), False, id="capsule"),
        pytest.param(ring(48.0, 20.0), False, id="ring"),
    ],
)
def test_outline_tells_boxes_from_the_rest(solid: np.ndarray, *, boxy: bool) -> None:
    found = inflation.straightness(solid)
    assert found > 0.9 if boxy else found < 0.1


def test_profile_overrules_the_outline() -> None:
    assert inflation.boxiness(disc(60.0), "flat") == 1.0
    assert inflation.boxiness(rectangle(60.0, 40.0), "rounded") == 0.0
