"""The body's sheets in space."""

from __future__ import annotations

import numpy as np
import pytest

from tempa.engines.splat.relief.inflation import half_thickness
from tempa.engines.splat.relief.surface import (
    camera_distance,
    gradients,
    middle_of,
    on_rays,
    outward,
    surface,
)

SIDE = 128
DISTANCE = 2.5


def disc(radius: float = 0.45) -> np.ndarray:
    line = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    solid: np.ndarray = np.hypot(line[None, :], line[:, None]) < radius
    return solid


def ring() -> np.ndarray:
    solid: np.ndarray = disc(0.45) & ~disc(0.2)
    return solid


def test_ball_is_a_ball_in_perspective() -> None:
    """A picture of radius R in the plane z = 0 is that of a ball of R / sqrt(1 + (R / d)^2)."""
    solid = disc()
    z = on_rays(half_thickness(solid, 0.0), DISTANCE, 0.0)
    line = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    reach = np.hypot(line[None, :], line[:, None]) * (1.0 - z / DISTANCE)
    found = np.hypot(reach, z)[disc(0.42)]
    true = 0.45 / np.hypot(1.0, 0.45 / DISTANCE)
    assert np.abs(found - true).max() < 0.012


def test_camera_sees_the_square() -> None:
    assert camera_distance(90.0, 1.0) == pytest.approx(0.5)
    assert camera_distance(90.0, 0.25) == pytest.approx(2.0)


def test_slopes_end_at_the_outline() -> None:
    solid = disc()
    level = np.where(solid, 1.0, 0.0)
    across, up = gradients(level, solid)
    assert np.abs(across).max() == np.abs(up).max() == 0.0


def test_slopes_are_those_of_a_plane() -> None:
    line = (np.arange(SIDE) + 0.5) / SIDE
    plane = 0.5 * line[None, :] - 0.25 * line[:, None]
    across, up = gradients(plane, disc())
    np.testing.assert_allclose(across[disc(0.4)], 0.5)
    np.testing.assert_allclose(up[disc(0.4)], 0.25)


def test_outward_is_away_from_the_middle() -> None:
    across, up = outward(disc())
    line = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    edge = (across != 0.0) | (up != 0.0)
    away = across * line[None, :] - up * line[:, None]
    assert edge.any()
    assert (away[edge] > 0.0).all()


def test_back_is_the_mirror_image() -> None:
    solid = disc()
    found = surface(half_thickness(solid, 0.0), solid, DISTANCE, 0.0)
    np.testing.assert_array_equal(found.back.heights[solid], -found.front.heights[solid])
    np.testing.assert_allclose(found.back.nearness[solid], found.front.nearness[solid], atol=1e-3)


def test_hole_is_not_stood_in() -> None:
    """Around a hole the back keeps to the rays: seen from the camera, it ends where the front ends."""
    solid = ring()
    near = 1.0  # or the back would hardly lie elsewhere than straight behind
    found = surface(half_thickness(solid, 0.0), solid, near, 0.0)
    line = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    inner = solid & disc(0.22)
    reach = np.hypot(line[None, :], line[:, None]) * found.back.nearness
    seen = reach / (1.0 - found.back.heights / near)
    assert seen[inner].min() > 0.2 - 1.0 / SIDE


def test_depth_image_is_the_front() -> None:
    solid = disc()
    line = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    depth = np.broadcast_to(1000.0 + 4000.0 * line[None, :], (SIDE, SIDE))
    half = 0.3 * half_thickness(solid, 0.0)
    found = surface(half, solid, DISTANCE, 0.0, middle_of(depth, half, solid, 0.4))
    inner = disc(0.35)
    across, up = gradients(found.front.heights, solid)
    assert np.ptp(across[inner]) < 0.05
    assert across[inner].mean() == pytest.approx(0.4 / 0.85, rel=0.1)
    assert np.abs(up[inner]).max() < 0.05


def test_level_depth_image_is_a_level_middle() -> None:
    solid = disc()
    assert not middle_of(np.full((SIDE, SIDE), 7.0), 0.0 * solid, solid, 0.4).any()
