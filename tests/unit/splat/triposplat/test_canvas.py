from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from tempa.engines.splat.triposplat.canvas import MARGIN, canvas


def disc(height: int, width: int, row: float, column: float, radius: float) -> np.ndarray:
    """A white disc on what nobody should see: transparent magenta."""
    y, x = np.mgrid[:height, :width]
    inside = np.hypot(y - row, x - column) <= radius
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[..., :3] = np.where(inside[..., None], 255, (255, 0, 255))
    pixels[..., 3] = np.where(inside, 255, 0)
    return pixels


def lit(picture: np.ndarray) -> Any:
    return picture.max(axis=2) > 127


def test_it_is_square_rgb() -> None:
    made = canvas(disc(60, 90, 30, 40, 20), 256, 1)
    assert (made.mode, made.size) == ("RGB", (256, 256))


@pytest.mark.parametrize(("row", "column"), [(30, 30), (12, 70), (45, 15)])
def test_the_object_is_in_the_middle_with_its_margin(row: int, column: int) -> None:
    found = lit(np.asarray(canvas(disc(60, 90, row, column, 10), 300, 0)))
    rows, columns = np.flatnonzero(found.any(axis=1)), np.flatnonzero(found.any(axis=0))
    for along in (rows, columns):
        assert along[-1] - along[0] + 1 == pytest.approx(300 / MARGIN, abs=8)
        assert (along[0] + along[-1]) / 2 == pytest.approx(149.5, abs=8)


def test_what_is_transparent_gives_no_colour() -> None:
    made = np.asarray(canvas(disc(80, 80, 40, 40, 30), 320, 0), np.int16)
    assert np.abs(made[..., 0] - made[..., 1]).max() <= 1  # grey all over: no magenta rim


def test_erosion_takes_its_pixels_off_the_edge() -> None:
    flat = disc(80, 80, 40, 40, 30.4)  # nine pixels at its outermost column: 30.0 has one, which goes at once
    whole, eroded = (lit(np.asarray(canvas(flat, 320, by))) for by in (0, 4))
    assert whole.any(axis=0).sum() - eroded.any(axis=0).sum() == pytest.approx(8, abs=2)


def test_a_half_transparent_pixel_is_half_as_bright() -> None:
    pixels = np.full((64, 64, 4), (200, 100, 50, 128), np.uint8)
    assert np.asarray(canvas(pixels, 128, 0))[64, 64] == pytest.approx((100, 50, 25), abs=1)


def test_a_strip_costs_what_its_square_costs() -> None:
    strip = np.zeros((2048, 256, 4), np.uint8)
    strip[:, 100:104] = 255
    tracemalloc.start()
    canvas(strip, 1024, 1)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 128 << 20


def test_one_pixel_is_an_object() -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[10, 20] = 255
    assert np.asarray(canvas(pixels, 64, 0)).max() > 200
