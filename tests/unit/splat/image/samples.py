"""Pictures whose every pixel is known."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WALL, DISC = (225, 228, 232), (60, 40, 160)


def coverage(side: int = 200, radius: float = 50.0, over: int = 8) -> NDArray[np.float64]:
    """How much of each pixel a disc in the middle covers, 0 to 1: by `over` x `over` points in each."""
    places = (np.arange(side * over) + 0.5) / over - side / 2
    inside = places[None] ** 2 + places[:, None] ** 2 <= radius**2
    shares: NDArray[np.float64] = inside.reshape(side, over, side, over).mean(axis=(1, 3))
    return shares


def disc(side: int = 200, wall: Any = WALL, color: Any = DISC) -> NDArray[np.uint8]:
    """An opaque picture of a disc with a smooth edge before a wall; `wall` may be a picture."""
    share = coverage(side)[..., None]
    colors = share * np.asarray(color, float) + (1 - share) * np.asarray(wall, float)
    opaque = np.full((side, side, 1), 255.0)
    pixels: NDArray[np.uint8] = np.rint(np.concatenate([colors, opaque], axis=2)).astype(np.uint8)
    return pixels


def saved(image: Image.Image, form: str, **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
