"""Making a decoded picture small, band by band, so that no second one of its size is ever in memory.

64 megapixels with alpha are 256 MB; a premultiplied copy would be as much again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

_BAND_PIXELS = 4_000_000
_SHALLOW = {"1": "L", "YCbCr": "RGB", "HSV": "RGB", "RGBX": "RGB", "LA": "RGBA", "La": "RGBA", "PA": "RGBA"}
_KEPT = {"L", "RGB", "RGBA", "CMYK", "LAB"}


def reduced(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """`image` in `size`, as L, RGB, CMYK, LAB or RGBA; untouched but for that if it has that size already.

    Averages over whole pixels first, then a filter without negative lobes: nothing rings. Colours count
    by their alpha.
    """
    if image.size == size:
        return _plain(image)
    factor = max(1, min(image.width // size[0], image.height // size[1]))
    bands = [_premultiplied(_plain(band)).reduce(factor) for band in _bands(image, factor)]
    whole = Image.new(bands[0].mode, (bands[0].width, sum(band.height for band in bands)))
    top = 0
    for band in bands:
        whole.paste(band, (0, top))
        top += band.height
    box = (0.0, 0.0, image.width / factor, image.height / factor)  # the last row and column may be partial
    small = whole.resize(size, Image.Resampling.HAMMING, box=box)
    return small.convert("RGBA") if small.mode == "RGBa" else small


def _bands(image: Image.Image, factor: int) -> Iterator[Image.Image]:
    rows = max(1, _BAND_PIXELS // image.width // factor) * factor
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height)))


def _premultiplied(image: Image.Image) -> Image.Image:
    return image.convert("RGBa") if image.mode == "RGBA" else image


def _plain(image: Image.Image) -> Image.Image:
    """In one of the modes the rest knows."""
    if image.mode.startswith("I;16"):
        return _from_16_bits(image)
    if image.mode in {"P", "PA"} or "transparency" in image.info:
        return image.convert("RGBA")
    if image.mode in _KEPT:
        return image
    return image.convert(_SHALLOW.get(image.mode, "RGB"))


def _from_16_bits(image: Image.Image) -> Image.Image:
    """65,535 is white: Pillow's own conversion has clipped at 255 in some releases."""
    order = ">" if image.mode.endswith("B") else "<"
    deep = np.frombuffer(image.tobytes(), f"{order}u2").reshape(image.height, image.width).astype(np.uint32)
    shallow = Image.fromarray(((deep * 255 + 32767) // 65535).astype(np.uint8))
    key = image.info.get("transparency")
    if not isinstance(key, int):
        return shallow
    shallow.putalpha(Image.fromarray(np.where(deep == key, 0, 255).astype(np.uint8)))
    return shallow.convert("RGBA")
