"""The picture as the model wants it: square, the object in its middle, on black."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARGIN = 1.2  # side of the square over the object's longer side; what the model was trained on


def canvas(rgba: NDArray[np.uint8], side: int, erode_radius: int) -> Image.Image:
    """A cut-out picture (height, width, 4) on a black square of `side` pixels.

    Memory goes by the picture and the square: upstream scales the short side up to the square's first,
    which made 5 GB of a strip of 2 x 400 pixels. `erode_radius` pixels of the square are taken off the
    edge, where a mask lets a background shine through. Colours are scaled as they will be seen, on black:
    what is transparent gives no colour to its neighbours.
    """
    left, top, extent = _square(rgba[..., 3])
    alpha = Image.fromarray(rgba[..., 3])
    colors = [Image.fromarray(_premultiplied(rgba, channel)) for channel in range(3)]
    box = (left, top, left + extent, top + extent)
    opaque = _scaled(alpha, box, side)
    eroded = opaque.filter(ImageFilter.MinFilter(2 * erode_radius + 1)) if erode_radius else opaque
    kept = np.asarray(eroded, np.float32) / np.maximum(np.asarray(opaque, np.float32), 1.0)
    planes = [np.asarray(_scaled(color, box, side), np.float32) * kept for color in colors]
    return Image.fromarray(np.clip(np.rint(np.stack(planes, axis=2)), 0, 255).astype(np.uint8))


def _square(alpha: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Left, top and side of the square around what is visible; it may reach beyond the picture."""
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    extent = max(1, math.ceil(MARGIN * max(bottom - top, right - left)))
    return int(left + right - extent) // 2, int(top + bottom - extent) // 2, extent


def _premultiplied(rgba: NDArray[np.uint8], channel: int) -> NDArray[np.uint8]:
    product = rgba[..., channel].astype(np.uint16) * rgba[..., 3]
    return ((product + 127) // 255).astype(np.uint8)


def _scaled(plane: Image.Image, box: tuple[int, int, int, int], side: int) -> Image.Image:
    """A part of a plane, 0 beyond its edges."""
    return plane.crop(box).resize((side, side), Image.Resampling.LANCZOS)
