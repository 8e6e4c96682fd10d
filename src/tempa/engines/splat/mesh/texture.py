"""Colours: between sRGB and light, and out of a texture."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tempa.engines.splat.mesh.faults import unreadable

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIXELS_MAX = 64 * 1024 * 1024  # of one texture: 256 MiB as RGBA
_FORMATS = ("PNG", "JPEG", "WEBP")  # what glTF allows, and its extension for WebP


def to_linear(srgb: NDArray[np.floating]) -> NDArray[np.float64]:
    """IEC 61966-2-1, both 0 to 1."""
    values = np.asarray(srgb, np.float64)
    return np.where(values <= 0.04045, values / 12.92, ((np.maximum(values, 0.0) + 0.055) / 1.055) ** 2.4)


def to_srgb(linear: NDArray[np.floating]) -> NDArray[np.float64]:
    """IEC 61966-2-1; what lies outside 0 to 1 is clipped."""
    values = np.clip(np.asarray(linear, np.float64), 0.0, 1.0)
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1.0 / 2.4) - 0.055)


def decode(data: bytes) -> NDArray[np.uint8]:
    """A texture's pixels (height, width, 4). Its size is looked at before any pixel is.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own bound is below
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > PIXELS_MAX:
                    raise unreadable(
                        "a texture is too large", pixels=image.width * image.height, limit=PIXELS_MAX
                    )
                return np.asarray(image.convert("RGBA"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise unreadable("a texture cannot be decoded", reason=type(error).__name__) from error


def reduced(texture: NDArray[np.uint8], samples: int) -> NDArray[np.uint8]:
    """Averaged down to about four pixels for each sample taken: more of them would be noise."""
    factor = int(np.sqrt(texture.shape[0] * texture.shape[1] / (4.0 * max(samples, 1))))
    return texture if factor < 2 else np.asarray(Image.fromarray(texture).reduce(factor))


def look_up(texture: NDArray[np.uint8], uvs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Linear RGB and opacity (n, 4) at places (n, 2), between four pixels; it repeats at its edges."""
    height, width = texture.shape[:2]
    finite = np.nan_to_num(uvs.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    places = (finite - np.floor(finite)) * (width, height) - 0.5
    corner = np.floor(places).astype(np.int64)
    share = places - corner
    total = np.zeros((len(uvs), 4))
    for down in (0, 1):
        for across in (0, 1):
            weight = np.abs(1 - across - share[:, 0]) * np.abs(1 - down - share[:, 1])
            pixels = texture[(corner[:, 1] + down) % height, (corner[:, 0] + across) % width] / 255.0
            pixels[:, :3] = to_linear(pixels[:, :3])
            total += weight[:, None] * pixels
    return total
