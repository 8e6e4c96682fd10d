"""What stands out: the ways to its alpha, clean edges, and the refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tempa.core.errors import TempaError
from tempa.engines.splat.image import edges, flood
from tempa.engines.splat.image.foreground import MASKS, cut_out
from tempa.engines.splat.image.lab import lab
from tests.unit.splat.image.samples import DISC, WALL, coverage, disc


def refusal(pixels: NDArray[np.uint8], mask: str = "auto", **how: Any) -> TempaError:
    with pytest.raises(TempaError) as caught:
        cut_out(pixels, mask, **how)
    return caught.value


def with_alpha(pixels: NDArray[np.uint8], alpha: NDArray[Any]) -> NDArray[np.uint8]:
    out = pixels.copy()
    out[..., 3] = np.rint(alpha)
    return out


def transparent_disc(side: int = 200) -> NDArray[np.uint8]:
    """As a cutter leaves it that knows nothing of edges: the wall is still in the soft pixels' colours."""
    return with_alpha(disc(side), 255 * coverage(side))


def test_its_own_alpha_comes_first() -> None:
    rgba, way = cut_out(transparent_disc(), "auto")
    assert way == "alpha"
    assert (rgba[..., 3] == transparent_disc()[..., 3]).all()


def test_without_alpha_the_wall_is_flooded() -> None:
    assert cut_out(disc(), "auto")[1] == "border-flood"


def test_a_flood_finds_the_disc_to_a_fraction_of_a_pixel() -> None:
    rgba, _ = cut_out(disc(), "border-flood")
    off = np.abs(rgba[..., 3] / 255 - coverage())
    assert off.max() < 0.035
    assert rgba[..., 3].sum() / 255 == pytest.approx(np.pi * 50**2, rel=2e-3)


@pytest.mark.parametrize("cut", [transparent_disc, disc])
def test_no_wall_is_left_in_any_color(cut: Any) -> None:
    rgba, way = cut_out(cut(), "auto")
    told = rgba[rgba[..., 3] > 0, :3].astype(int)
    most = 6 if way == "border-flood" else 30  # of 190 between disc and wall
    assert np.abs(told - DISC).max() <= most


def test_where_an_alpha_is_low_the_color_is_its_neighbours() -> None:
    rgba, _ = cut_out(transparent_disc(), "alpha")
    low = (rgba[..., 3] > 0) & (rgba[..., 3] < 64)
    assert low.sum() > 20
    assert np.abs(rgba[low, :3].astype(int) - DISC).max() <= 30
    assert np.abs(transparent_disc()[low, :3].astype(int) - DISC).max() > 120  # as it came


@pytest.mark.parametrize("cut", [transparent_disc, disc])
def test_past_the_edge_colors_go_on_and_no_wall_comes_back(cut: Any) -> None:
    rgba, _ = cut_out(cut(), "auto")
    assert np.abs(rgba[rgba[..., 3] == 0, :3].astype(int) - DISC).max() <= 30


def test_a_wall_may_grow_darker_to_its_corners() -> None:
    y, x = np.mgrid[-1:1:200j, -1:1:200j]
    wall = 225 - 40 * (x * x + 0.5 * y * y)[..., None] * np.ones(3) + 10 * x[..., None]
    rgba, way = cut_out(disc(wall=wall), "auto")
    assert way == "border-flood"
    assert np.abs(rgba[..., 3] / 255 - coverage()).max() < 0.04


def test_a_noisy_wall_is_still_one() -> None:
    noise = np.random.default_rng(3).normal(0, 3, (200, 200, 3))
    rgba, _ = cut_out(disc(wall=np.asarray(WALL) + noise), "auto")
    assert (rgba[coverage() == 0, 3] == 0).mean() > 0.999
    assert (rgba[coverage() == 1, 3] > 250).mean() > 0.999


def test_what_crosses_a_side_does_not_spoil_the_wall() -> None:
    pixels = disc()
    pixels[100:, 80:120, :3] = DISC  # down to the border, through the disc's middle
    rgba, way = cut_out(pixels, "auto")
    assert way == "border-flood"
    assert (rgba[190:, 84:116, 3] == 255).all()
    assert (rgba[:20, :, 3] == 0).all()


def test_a_hole_stays_foreground() -> None:
    pixels = disc()
    pixels[90:110, 90:110, :3] = WALL
    assert (cut_out(pixels, "auto")[0][90:110, 90:110, 3] == 255).all()


def test_specks_on_the_wall_are_wall() -> None:
    pixels = disc()
    pixels[10:13, 10:13, :3] = 0
    assert not cut_out(pixels, "auto")[0][:30, :30, 3].any()


def test_a_wider_tolerance_floods_more() -> None:
    pixels = disc(color=[value - 30 for value in WALL])
    assert refusal(pixels, tolerance=20.0).detail["reason"] == "plain"
    assert cut_out(pixels, "auto", tolerance=5.0)[0][100, 100, 3] == 255


def test_a_thin_line_stays_opaque() -> None:
    pixels = disc()
    pixels[98:101, :, :3] = DISC
    assert (cut_out(pixels, "border-flood")[0][99, 60:140, 3] == 255).all()


def test_a_few_clear_pixels_are_no_cut_out() -> None:
    pixels = disc()
    pixels[:6, :6] = 0  # a rounded corner: 0.09 %
    rgba, way = cut_out(pixels, "auto")
    assert way == "border-flood"
    assert not rgba[:6, :6, 3].any()


def test_what_was_clear_stays_so_after_a_flood() -> None:
    pixels = disc()
    pixels[95:100, 95:100, 3] = 90
    assert (cut_out(pixels, "border-flood")[0][96:99, 96:99, 3] <= 90).all()


def cluttered() -> NDArray[np.uint8]:
    noise = np.random.default_rng(5).integers(0, 256, (200, 200, 3))
    return disc(wall=noise)


def test_before_a_cluttered_wall_a_model_is_needed() -> None:
    error = refusal(cluttered())
    assert (error.code, error.retryable) == ("MASK_PROVIDER_UNAVAILABLE", False)
    assert '"mask": "border-flood"' in str(error.hint)


def test_a_flood_that_is_asked_for_tries_all_the_same() -> None:
    pixels = disc()
    pixels[:, :40, :3] = (20, 90, 20)
    pixels[:70, :, :3] = (20, 90, 20)
    assert refusal(pixels).code == "MASK_PROVIDER_UNAVAILABLE"
    rgba, way = cut_out(pixels, "border-flood")
    assert way == "border-flood"
    assert (rgba[100, 100, 3], rgba[190, 190, 3] == rgba[10, 10, 3]) == (255, False)


@pytest.mark.parametrize("mask", ["auto", "alpha"])
def test_a_transparent_picture_shows_nothing(mask: str) -> None:
    error = refusal(with_alpha(disc(), np.zeros((200, 200))), mask)
    assert (error.code, error.detail["reason"]) == ("NO_FOREGROUND", "transparent")


@pytest.mark.parametrize("mask", ["auto", "border-flood"])
def test_a_plain_picture_shows_nothing(mask: str) -> None:
    error = refusal(disc(color=WALL), mask)
    assert (error.code, error.detail["reason"]) == ("NO_FOREGROUND", "plain")


def test_a_speck_is_too_small() -> None:
    alpha = np.zeros((200, 200))
    alpha[100:106, 100:106] = 255  # 0.09 %
    error = refusal(with_alpha(disc(), alpha))
    assert (error.code, error.detail) == (
        "NO_FOREGROUND",
        {"reason": "too_small", "limit": 0.001, "actual": 0.0009},
    )


def test_a_little_more_than_a_speck_is_enough() -> None:
    alpha = np.zeros((200, 200))
    alpha[100:107, 100:107] = 255
    assert cut_out(with_alpha(disc(), alpha), "auto")[1] == "alpha"


def test_an_opaque_picture_has_no_alpha_to_go_by() -> None:
    error = refusal(disc(), "alpha")
    assert (error.code, error.detail["reason"]) == ("NO_FOREGROUND", "fills_frame")


def test_the_ways_are_these() -> None:
    assert MASKS == ("auto", "alpha", "border-flood", "model")


def test_the_same_picture_gives_the_same_bytes() -> None:
    assert cut_out(disc(), "auto")[0].tobytes() == cut_out(disc(), "auto")[0].tobytes()


def test_what_came_is_left_alone() -> None:
    pixels = disc()
    before = pixels.copy()
    cut_out(pixels, "auto")
    assert (pixels == before).all()


@pytest.mark.parametrize(
    ("rgb", "expected"),
    [  # from the definition, to two decimals
        ((255, 255, 255), (100.0, 0.0, 0.0)),
        ((0, 0, 0), (0.0, 0.0, 0.0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((128, 128, 128), (53.59, 0.0, 0.0)),
        ((5, 5, 5), (1.37, 0.0, 0.0)),
    ],
)
def test_lab_is_lab(rgb: tuple[int, ...], expected: tuple[float, ...]) -> None:
    assert lab(np.array([[rgb]], np.uint8))[0, 0] == pytest.approx(expected, abs=0.02)


def test_colors_spread_ring_by_ring_and_no_farther() -> None:
    colors = np.zeros((9, 9, 3), np.float32)
    colors[4, 4] = (10, 20, 30)
    known = np.zeros((9, 9), bool)
    known[4, 4] = True
    at, values = edges.spread(colors, known, ~known, 2)
    rows, columns = np.divmod(at, 9)
    assert len(at) == 24
    assert np.maximum(abs(rows - 4), abs(columns - 4)).max() == 2
    assert (values == (10, 20, 30)).all()


def test_colors_spread_from_the_corner_too() -> None:
    known = np.zeros((3, 3), bool)
    known[0, 0] = True
    at, _ = edges.spread(np.ones((3, 3, 3), np.float32), known, ~known, 5)
    assert len(at) == 8


def test_a_border_of_two_colors_is_not_plain() -> None:
    pixels = disc()
    pixels[:, :100, :3] = (20, 90, 20)
    assert flood.survey(disc(), 10.0).share == 1.0
    assert not flood.survey(pixels, 10.0).is_plain


def test_a_thin_bar_is_freed_of_the_wall_too() -> None:
    """Five pixels wide, its two outer rows half of the wall."""
    pixels = disc()
    pixels[..., :3] = WALL
    pixels[98:103, 20:180, :3] = DISC
    half = (np.array(WALL) + DISC) // 2
    pixels[97, 20:180, :3], pixels[103, 20:180, :3] = half, half
    rgba, _ = cut_out(pixels, "border-flood")
    assert rgba[[97, 103], 100, 3].tolist() == pytest.approx([127.5, 127.5], abs=2)
    assert np.abs(rgba[rgba[..., 3] > 0, :3].astype(int) - DISC).max() <= 3
