"""From a file's bytes to upright sRGB pixels, at most 2,048 long. Child processes only."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from tempa.core.errors import TempaError
from tempa.engines.splat.image import color, reduction
from tempa.engines.splat.image.door import excess
from tempa.engines.splat.image.facts import Fault, Refused, broken, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.image.facts import Bounds, Facts

LONG_SIDE_MAX = 2048
_ORIENTATION = 0x0112  # the EXIF tag
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_PLUGINS = {"png": "PNG", "jpeg": "JPEG", "webp": "WEBP", "avif": "AVIF", "tiff": "TIFF"}
_DEEP_MODES = {"I", "F"}  # 32 bits a sample, of no known range


def prepare() -> None:
    """Load Pillow's readers. Starts no thread."""
    Image.init()


def decode(path: Path, facts: Facts, bounds: Bounds) -> NDArray[np.uint8]:
    """The pixels (height, width, 4), sRGB with straight alpha, of a file whose header showed `facts`.

    Of an animation the first frame. Raises TempaError: IMAGE_UNREADABLE, IMAGE_FORMAT_UNSUPPORTED,
    IMAGE_TOO_LARGE; MemoryError if the process may not have as much as it takes.
    """
    try:
        with path.open("rb") as file, _limited(bounds.pixels_max):
            image = _opened(file, facts)
            _check(replace(facts, width=image.width, height=image.height), bounds)
            return _pixels(image)
    except Refused as refused:
        raise refused.fault.error() from refused
    except Image.DecompressionBombWarning as error:  # pixels that the header did not show
        fault = Fault("IMAGE_TOO_LARGE", "The image is larger than its header says.", bounds.pixels_max)
        raise fault.error() from error
    except (MemoryError, TempaError):
        raise
    except Exception as error:
        # Pillow and its plug-ins end on broken bytes with OSError, SyntaxError, ValueError, EOFError,
        # RuntimeError, struct.error, and whatever else a reader in Python stumbles over.
        hint = "If a viewer still opens it, save it anew as PNG; else send it again, whole."
        raise broken("The picture's data is broken or cut off.", hint).fault.error() from error


@contextlib.contextmanager
def _limited(pixels_max: int) -> Iterator[None]:
    """Pillow's own limit, as an error, while a picture is read. Its other warnings tell nobody anything."""
    before = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = pixels_max
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


def _opened(file: BinaryIO, facts: Facts) -> Image.Image:
    if facts.format == "heic":
        from tempa.engines.splat.image.heic import opened

        return opened(file.read())
    return Image.open(file, formats=[_PLUGINS[facts.format]])


def _check(facts: Facts, bounds: Bounds) -> None:
    """Once more: a HEIC file's header may say more than its picture has, as it is padded and cropped."""
    fault = excess(facts, bounds)
    if fault is not None:
        raise Refused(fault)


def _pixels(image: Image.Image) -> NDArray[np.uint8]:
    """Colours are matched and the picture turned when it is small: both cost by the pixel."""
    if isinstance(image, JpegImageFile):
        image.draft(None, _fitted(image.size))  # the decoder leaves out what would be thrown away
    image.load()
    if image.mode in _DEEP_MODES:
        raise unsupported("Pictures with 32 bits a sample are not read.", "Send 8 or 16 bits a sample.")
    profile = image.info.get("icc_profile")
    turn = _UPRIGHT.get(_orientation(image))
    small = reduction.reduced(image, _fitted(image.size))
    upright = color.in_srgb(small, profile)
    if turn is not None:
        upright = upright.transpose(turn)
    return np.array(upright, np.uint8, order="C")


def _fitted(size: tuple[int, int]) -> tuple[int, int]:
    long = max(size)
    if long <= LONG_SIDE_MAX:
        return size
    width, height = (max(1, round(side * LONG_SIDE_MAX / long)) for side in size)
    return width, height


def _orientation(image: Image.Image) -> Any:
    """By EXIF; metadata that cannot be read does not spoil a picture."""
    with contextlib.suppress(Exception):
        return image.getexif().get(_ORIENTATION)
    return None
