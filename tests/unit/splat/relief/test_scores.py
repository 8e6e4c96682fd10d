"""The bench's scores, where they can be told by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.splat import scores


def picture(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((40, 40, 3))


def test_psnr_of_a_tenth_is_20_db() -> None:
    assert scores.psnr(np.full((8, 8, 3), 0.6), np.full((8, 8, 3), 0.5)) == pytest.approx(20.0)


def test_psnr_of_the_same_has_an_end() -> None:
    assert scores.psnr(picture(), picture()) == scores.PSNR_MOST


def test_ssim_of_the_same_is_one() -> None:
    assert scores.ssim(picture(), picture()) == pytest.approx(1.0)


def test_ssim_of_levels_is_that_of_their_means() -> None:
    """Without variance only the term of luminance is left."""
    a, b = np.full((30, 30, 3), 0.2), np.full((30, 30, 3), 0.6)
    expected = (2 * 0.2 * 0.6 + 0.01**2) / (0.2**2 + 0.6**2 + 0.01**2)
    assert scores.ssim(a, b) == pytest.approx(expected)


def test_ssim_of_a_negative_is_below_zero() -> None:
    assert scores.ssim(1.0 - picture(), picture()) < -0.5


def test_ssim_window_has_eleven_pixels() -> None:
    point = np.zeros((41, 41, 3))
    point[20, 20] = 1.0
    assert np.count_nonzero(scores._windowed(point)[20, :, 0]) == 11


def test_overlap_by_counting() -> None:
    a, b = np.zeros((10, 10), np.bool_), np.zeros((10, 10), np.bool_)
    a[:, :6], b[:, 4:] = True, True
    assert scores.overlap(a, b) == pytest.approx(0.2)
    assert scores.overlap(a, a) == 1.0


def test_light_outside_by_counting() -> None:
    true = np.zeros((20, 20), np.bool_)
    true[5:10, 5:10] = True
    light = np.zeros((20, 20, 3))
    light[7, 7], light[15, 15] = 0.6, 0.2
    assert scores.light_outside(light, true) == pytest.approx(0.04 / 0.40)


def test_outlines_own_pixel_is_inside() -> None:
    true = np.zeros((20, 20), np.bool_)
    true[5:10, 5:10] = True
    light = np.zeros((20, 20, 3))
    light[4, 7] = 1.0
    assert scores.light_outside(light, true) == 0.0


def test_foreign_light_by_counting() -> None:
    light = np.zeros((4, 4, 3))
    light[0, 0] = (0.5, 0.3, 0.2)
    assert scores.foreign_light(light, 2) == pytest.approx(0.2)
