"""Pictures agree with a second renderer, and are the same to the bit however they were made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tempa.engines.splat.gaussians import Gaussians, joined
from tempa.engines.splat.raster import tiles
from tempa.engines.splat.raster.camera import Camera, orbit
from tempa.engines.splat.raster.render import arrange, back_project, render
from tests.unit.splat.raster import reference
from tests.unit.splat.raster.clouds import dots, wild

if TYPE_CHECKING:
    from numpy.typing import NDArray

AGREEMENT_DB = 100.0  # asked for are 50; measured are 135 and more


def psnr(one: NDArray[np.float32], other: NDArray[np.float64]) -> float:
    return -10.0 * math.log10(float(np.mean((one - other) ** 2)) + 1e-30)


def agreement(gaussians: Gaussians, camera: Camera) -> float:
    """The worse of colours and alpha."""
    image = render(gaussians, camera)
    rgb, alpha = reference.picture(gaussians, camera)
    return min(psnr(image.rgb, rgb), psnr(image.alpha, alpha))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_it_agrees_with_the_reference_in_every_degree(degree: int) -> None:
    camera = orbit(40.0, 30.0, 1.5, width=75, height=59)

    assert agreement(wild(150, degree=degree), camera) > AGREEMENT_DB


@pytest.mark.parametrize(("yaw", "pitch"), [(0, 0), (180, -45), (270, 89)])
def test_it_agrees_from_every_side(yaw: float, pitch: float) -> None:
    assert agreement(wild(150, seed=2), orbit(yaw, pitch, 1.5, width=48, height=64)) > AGREEMENT_DB


def test_it_agrees_in_the_midst_of_the_cloud() -> None:
    """Gaussians behind the camera, beside it and all over the picture."""
    assert agreement(wild(150, seed=3), orbit(10.0, 5.0, 0.2, width=40, height=40)) > AGREEMENT_DB


def test_it_agrees_on_long_thin_diagonals() -> None:
    """A conic in its square form has lost its digits here."""
    cloud = wild(40, seed=4)
    scales = np.tile(np.array((5.0, 1e-4, 1e-4), np.float32), (40, 1))
    cloud = Gaussians(cloud.positions, scales, cloud.rotations, cloud.opacities, cloud.harmonics)

    assert agreement(cloud, orbit(0.0, 0.0, 2.0, width=400, height=300)) > AGREEMENT_DB


def several_parts() -> tuple[Gaussians, Camera]:
    """More in each band than `PART`; nearest is a wall that fills some pixels of some tiles."""
    wall = dots([(-0.4, 0.0, 0.95)] * 6, [(1, 0, 0)] * 6, scale=0.2)
    cloud = wild(3 * tiles.PART, seed=6)
    cloud.scales[:] *= 0.3
    cloud.opacities[:] *= 0.1
    return joined([wall, cloud]), orbit(0.0, 0.0, 2.5, width=40, height=32)


def test_it_agrees_on_lists_of_several_parts() -> None:
    assert agreement(*several_parts()) > AGREEMENT_DB


def test_a_full_pixel_is_done() -> None:
    """Of five of opacity 0.92 the fourth leaves 4e-5 of the light, and the blue fifth is not drawn."""
    camera = orbit(0.0, 0.0, 2.0, width=33, height=33)
    red, blue = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    cloud = dots([(0, 0, -0.1 * k) for k in range(5)], [red] * 4 + [blue], scale=99.0, opacity=0.92)

    rgb = render(cloud, camera).rgb
    weight, _ = back_project(cloud, camera, np.ones((33, 33, 1), np.float32))

    assert not rgb[..., 2].any()
    assert weight == pytest.approx(33 * 33 * 0.92 * 0.08 ** np.arange(5.0) * (1, 1, 1, 1, 0), rel=1e-2)


def test_the_reference_itself_can_be_missed() -> None:
    """Half a pixel off is seen."""
    cloud, camera = wild(100), orbit(40.0, 30.0, 1.5, width=48, height=48)
    rgb, _ = reference.picture(cloud, camera)

    assert psnr(render(cloud, camera).rgb[:, 1:], rgb[:, :-1]) < 40.0


def test_one_gaussian_is_its_closed_form() -> None:
    """Seen straight on: variance (f s / d)^2 + 0.3, at a pixel's centre half a pixel off its own."""
    camera = orbit(0.0, 0.0, 1.0, width=32, height=32, field_of_view_degrees=90.0)

    alpha = render(dots([(0.0, 0.0, 0.0)], [(1.0, 1.0, 1.0)], scale=0.2, opacity=0.8), camera).alpha

    variance = (16.0 * 0.2) ** 2 + 0.3
    assert alpha[16, 16] == pytest.approx(0.8 * math.exp(-0.25 / variance), rel=1e-5)
    assert alpha[16, 20] == pytest.approx(0.8 * math.exp(-0.5 * (4.5**2 + 0.5**2) / variance), rel=1e-5)


def test_the_nearer_hides_the_farther() -> None:
    red, blue = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    cloud = dots([(0, 0, -0.2), (0, 0, 0.2)], [blue, red], scale=0.2)

    front = render(cloud, orbit(0.0, 0.0, 2.0, width=33, height=33)).rgb[16, 16]
    back = render(cloud, orbit(180.0, 0.0, 2.0, width=33, height=33)).rgb[16, 16]

    np.testing.assert_allclose(front, (0.99, 0.0, 0.0099), atol=1e-3)
    np.testing.assert_allclose(back, (0.0099, 0.0, 0.99), atol=1e-3)


def test_of_equals_in_depth_the_first_is_in_front() -> None:
    cloud = dots([(0, 0, 0), (0, 0, 0)], [(1, 0, 0), (0, 1, 0)], scale=0.2)

    red, green, _ = render(cloud, orbit(0.0, 0.0, 2.0, width=17, height=17)).rgb[8, 8]

    assert red > 0.98
    assert green < 0.02


def test_depth_is_the_distance_along_the_axis() -> None:
    camera = orbit(0.0, 0.0, 2.0, width=65, height=33, field_of_view_degrees=60.0)
    image = render(dots([(0.8, 0.0, 0.25)], [(1, 1, 1)], scale=0.1), camera)

    shown = image.depth[image.alpha > 0.0]

    np.testing.assert_allclose(shown, 1.75, rtol=1e-5)
    assert image.depth[0, 0] == 0.0


def test_a_background_shows_where_nothing_is() -> None:
    cloud, camera = wild(50), orbit(0.0, 0.0, 2.5, width=40, height=40)
    bare, over = render(cloud, camera), render(cloud, camera, (0.25, 0.5, 0.75))

    expected = bare.rgb + (1.0 - bare.alpha[..., None]) * np.array((0.25, 0.5, 0.75), np.float32)
    np.testing.assert_allclose(over.rgb, expected, atol=1e-6)


def test_nothing_gives_an_empty_picture() -> None:
    image = render(wild(0), orbit(0.0, 0.0, 2.0, width=20, height=10))

    assert image.rgb.shape == (10, 20, 3)
    assert not image.rgb.any()
    assert not image.alpha.any()


def test_one_thread_and_five_draw_the_same_bytes() -> None:
    cloud, camera = wild(3000, degree=1), orbit(20.0, 10.0, 1.5, width=250, height=190)
    one, five = render(cloud, camera, threads=1), render(cloud, camera, threads=5)

    assert one.rgb.tobytes() == five.rgb.tobytes()
    assert one.alpha.tobytes() == five.alpha.tobytes()
    assert one.depth.tobytes() == five.depth.tobytes()


HOSTILE = {
    "not a number": ("positions", np.nan),
    "endlessly far": ("positions", np.inf),
    "very far": ("positions", 3e38),
    "endlessly large": ("scales", np.inf),
    "very large": ("scales", 1e30),
    "flat": ("scales", 0.0),
    "of a size not a number": ("scales", np.nan),
    "turned by nothing": ("rotations", 0.0),
    "turned by not a number": ("rotations", np.nan),
    "opaque beyond measure": ("opacities", np.inf),
    "of an opacity not a number": ("opacities", np.nan),
    "of an opacity below nought": ("opacities", -1.0),
    "endlessly bright": ("harmonics", np.inf),
    "of a colour not a number": ("harmonics", np.nan),
}


@pytest.mark.parametrize("which", HOSTILE)
def test_a_gaussian_without_sense_spoils_no_picture(which: str) -> None:
    name, value = HOSTILE[which]
    camera = orbit(0.0, 0.0, 2.0, width=48, height=48)
    bad = dots([(0.0, 0.0, 0.3)], [(1.0, 1.0, 1.0)])
    getattr(bad, name)[...] = value

    image = render(joined([wild(50), bad]), camera)

    assert np.isfinite(image.rgb).all()
    assert np.isfinite(image.depth).all()
    assert image.alpha.min() >= 0.0
    assert image.alpha.max() <= 1.0


@pytest.mark.parametrize("length", [1e8, 1e10, 1e12])
def test_needles_without_end_spoil_no_picture(length: float) -> None:
    """Of the variance across a diagonal one rounding leaves nothing, or less than nothing."""
    turns = np.linspace(0.0, math.pi / 2.0, 64)
    cloud = dots([(0.0, 0.0, 0.3)] * 64, [(1, 1, 1)] * 64)
    cloud.scales[:, 0] = length
    cloud.rotations[:] = np.stack((np.cos(turns), 0.0 * turns, 0.0 * turns, np.sin(turns)), axis=1)

    records = arrange(cloud, orbit(0.0, 0.0, 2.0, width=48, height=48)).records

    assert np.isfinite(records).all()
    assert 0 < len(records) < 64


def test_what_is_behind_the_camera_is_not_drawn() -> None:
    image = render(dots([(0.0, 0.0, 3.0)], [(1, 1, 1)], scale=0.5), orbit(0.0, 0.0, 2.0, width=16, height=16))

    assert not image.alpha.any()


def test_huge_ones_need_no_more_memory_than_small_ones() -> None:
    """Each covers all of the picture: a list by tile would hold 1,024 times as many as there are."""
    cloud = dots([(0.0, 0.0, 0.01 * k) for k in range(40)], [(1, 1, 1)] * 40, scale=100.0, opacity=0.5)

    image = render(cloud, orbit(0.0, 0.0, 2.0))

    assert image.alpha.min() > 0.999


def test_the_falloff_is_the_exponential() -> None:
    s = np.linspace(0.0, 0.67, 1000).astype(np.float32)

    got = np.array([tiles._alpha(np.float32(value), np.float32(0.9)) for value in s])

    np.testing.assert_allclose(got, 0.9 * np.exp(-8.0 * s.astype(np.float64)), rtol=3e-6)


def test_weights_add_up_to_the_alpha_of_the_picture() -> None:
    cloud, camera = wild(300), orbit(30.0, 10.0, 1.5, width=70, height=50)

    weight, sums = back_project(cloud, camera, np.ones((50, 70, 1), np.float32))

    assert weight.sum() == pytest.approx(float(render(cloud, camera).alpha.sum(dtype=np.float64)), rel=1e-5)
    np.testing.assert_allclose(sums[:, 0], weight, rtol=1e-6)


def test_weights_add_up_over_lists_of_several_parts() -> None:
    cloud, camera = several_parts()

    weight, _ = back_project(cloud, camera, np.ones((32, 40, 1), np.float32))

    assert weight.sum() == pytest.approx(float(render(cloud, camera).alpha.sum(dtype=np.float64)), rel=1e-5)


def test_a_weight_is_what_a_colour_changes_in_the_picture() -> None:
    """Blending is linear in each Gaussian's colour: its weighted sum of an image is a scalar product."""
    cloud, camera = wild(60), orbit(30.0, 10.0, 1.5, width=50, height=40)
    dice = np.random.default_rng(5)
    images = dice.uniform(size=(40, 50, 2)).astype(np.float32)

    _, sums = back_project(cloud, camera, images)

    for i in (3, 17, 42):
        alone = np.zeros_like(cloud.harmonics)
        alone[:] = -0.5 / 0.28209479  # all black
        alone[i] = +0.5 / 0.28209479  # but one
        parts = (cloud.positions, cloud.scales, cloud.rotations, cloud.opacities)
        lit = render(Gaussians(*parts, alone), camera).rgb[..., 0]
        np.testing.assert_allclose(sums[i], np.tensordot(lit, images, 2), rtol=1e-4, atol=1e-5)


def test_one_thread_and_five_project_back_the_same_bytes() -> None:
    cloud, camera = wild(2000), orbit(20.0, 10.0, 1.5, width=250, height=190)
    images = render(cloud, camera).rgb

    one, five = (back_project(cloud, camera, images, threads=threads) for threads in (1, 5))

    assert one[0].tobytes() == five[0].tobytes()
    assert one[1].tobytes() == five[1].tobytes()
