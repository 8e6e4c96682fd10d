"""HEIC by libheif (the extra `heic`), past Pillow's plug-in: that holds the pixels once more."""

from __future__ import annotations

import pillow_heif
from PIL import Image

_UPRIGHT_ALREADY = ("exif", "xmp")  # libheif turns the picture by its own boxes, and leaves the notes


def opened(data: bytes) -> Image.Image:
    """The primary picture; turned upright, in 8 bits a sample."""
    pillow_heif.options.DECODE_THREADS = 1  # each thread would hold a tile
    file = pillow_heif.open_heif(data, convert_hdr_to_8bit=True)
    first = file[file.primary_index]
    pixels, mode, stride = first.data, first.mode, first.stride
    image = Image.frombuffer(mode, first.size, pixels, "raw", mode, stride, 1)
    image.info = {name: value for name, value in first.info.items() if name not in _UPRIGHT_ALREADY}
    return image
