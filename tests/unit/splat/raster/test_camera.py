"""Where a camera stands, and where in its picture things come to lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tempa.engines.splat.raster.camera import framing_distance, orbit

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("yaw", "pitch", "right", "up", "towards"),
    [
        (0, 0, (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        (90, 0, (0, 0, -1), (0, 1, 0), (1, 0, 0)),
        (180, 0, (-1, 0, 0), (0, 1, 0), (0, 0, -1)),
        (0, 90, (1, 0, 0), (0, 0, -1), (0, 1, 0)),
        (0, -90, (1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ],
)
def test_an_orbit_stands_where_it_says(
    yaw: float, pitch: float, right: tuple[float, ...], up: tuple[float, ...], towards: tuple[float, ...]
) -> None:
    camera = orbit(yaw, pitch, 2.0)

    np.testing.assert_allclose(camera.rotation, [right, up, towards], atol=1e-12)
    np.testing.assert_allclose(camera.position, 2.0 * np.array(towards), atol=1e-12)


def test_its_rotation_keeps_lengths_and_hands() -> None:
    rotation = orbit(37.0, -21.0, 1.5).rotation

    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("point", "place"), [((0, 0, 0), (100, 50)), ((0.5, 0, 0), (125, 50)), ((0, 0.5, 0), (100, 25))]
)
def test_x_goes_right_and_y_goes_up_in_a_picture(point: tuple[float, ...], place: tuple[float, ...]) -> None:
    camera = orbit(0.0, 0.0, 1.0, width=200, height=100, field_of_view_degrees=90.0)

    places, depths = camera.project(np.array([point]))

    np.testing.assert_allclose(places, [place], atol=1e-9)
    np.testing.assert_allclose(depths, [1.0])


def test_the_focal_length_is_that_of_the_vertical_field() -> None:
    camera = orbit(0.0, 0.0, 1.0, width=400, height=100, field_of_view_degrees=60.0)

    assert camera.focal_pixels == pytest.approx(50.0 / math.tan(math.radians(30.0)))


def test_a_target_takes_the_camera_along() -> None:
    camera = orbit(30.0, 10.0, 2.0, target=(0.1, 0.2, 0.3))

    places, depths = camera.project(np.array([(0.1, 0.2, 0.3)]))

    np.testing.assert_allclose(places, [(256.0, 256.0)], atol=1e-9)
    np.testing.assert_allclose(depths, [2.0])


def test_a_sphere_framed_just_touches_the_edge() -> None:
    distance = framing_distance(0.5, 40.0, margin=1.0)

    assert math.degrees(math.asin(0.5 / distance)) == pytest.approx(20.0)
