"""Colours out of textures, and between sRGB and light."""

from __future__ import annotations

import io
import zlib

import numpy as np
import pytest
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat.mesh import texture


@pytest.mark.parametrize(("srgb", "linear"), [(0.0, 0.0), (1.0, 1.0), (0.5, 0.21404114), (0.02, 0.00154799)])
def test_srgb_is_that_of_the_standard(srgb: float, linear: float) -> None:
    assert texture.to_linear(np.array(srgb)) == pytest.approx(linear, rel=1e-5)
    assert texture.to_srgb(np.array(linear)) == pytest.approx(srgb, rel=1e-5)


def image(width: int = 4, height: int = 2) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (255, 0, 0)).save(file, "PNG")
    return file.getvalue()


def test_v_goes_down_and_pixel_centres_are_exact() -> None:
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[0, 1] = (255, 0, 0, 255)  # top right
    places = np.array([(0.75, 0.25), (0.25, 0.25), (0.75, 0.75)], np.float32)

    np.testing.assert_allclose(texture.look_up(pixels, places)[:, 0], [1.0, 0.0, 0.0], atol=1e-6)


def test_between_pixels_light_is_mixed() -> None:
    pixels = np.zeros((1, 2, 4), np.uint8)
    pixels[0, 1] = 255

    assert texture.look_up(pixels, np.array([(0.5, 0.5)], np.float32))[0, 0] == pytest.approx(0.5)


def test_what_is_looked_up_is_light() -> None:
    grey = np.full((2, 2, 4), 128, np.uint8)

    found = texture.look_up(grey, np.array([(0.4, 0.7)], np.float32))[0]

    assert found == pytest.approx([0.2158605] * 3 + [128 / 255], abs=1e-6)


def test_it_repeats() -> None:
    pixels = np.arange(16, dtype=np.uint8).reshape(2, 2, 4) * 16
    places = np.array([(0.3, 0.6)], np.float32)

    np.testing.assert_allclose(
        texture.look_up(pixels, places + np.array((5, -3), np.float32)),
        texture.look_up(pixels, places),
        atol=1e-5,
    )


def test_a_texture_finer_than_the_samples_is_averaged() -> None:
    chequers = np.indices((64, 64)).sum(axis=0) % 2 * np.uint8(255)
    pixels = np.repeat(chequers[..., None], 4, axis=2).astype(np.uint8)
    pixels[..., 3] = 255

    small = texture.reduced(pixels, 64)

    assert small.shape[:2] == (16, 16)
    assert abs(small[..., :3].astype(int) - 127).max() <= 1


def test_a_texture_is_decoded_with_its_opacity() -> None:
    assert texture.decode(image()).tolist() == [[[255, 0, 0, 255]] * 4] * 2


@pytest.mark.parametrize("data", [b"", b"GIF89a", image()[:40], b"<svg/>"])
def test_what_is_no_texture_is_refused(data: bytes) -> None:
    with pytest.raises(TempaError) as caught:
        texture.decode(data)

    assert caught.value.code == "IMPORT_FAILED"


@pytest.mark.parametrize(
    ("side", "told"),
    [(8193, {"pixels": 8193**2, "limit": 8192**2}), (30_000, {"reason": "DecompressionBombError"})],
)
def test_a_bomb_is_refused_before_it_goes_off(side: int, told: dict[str, object]) -> None:
    """The header tells of `side` squared pixels; there is none."""
    small = image(side, 1)
    header = small[:20] + side.to_bytes(4, "big")
    rest = small[24:]
    body = header[12:24] + rest[:5]
    data = header + rest[:5] + zlib.crc32(body).to_bytes(4, "big") + rest[9:]

    with pytest.raises(TempaError) as caught:
        texture.decode(data)

    assert caught.value.code == "IMPORT_FAILED"
    assert caught.value.detail == told
