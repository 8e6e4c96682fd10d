"""A depth image beside a picture: one channel, as a sensor or another model made it. Nearer is brighter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat.image import door
from tempa.engines.splat.image.facts import Bounds, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.image.picture import Picture

FORMATS = ("png", "tiff")  # what holds 16 bits or floats in one channel
ASPECT_TOLERANCE = 0.01  # a picture that was made smaller is rounded to whole pixels


def read(path: Path, picture: Picture, *, bounds: Bounds | None = None) -> NDArray[np.float64]:
    """Depths of the picture's pixels, (h, w), in the file's own numbers; 8, 16 or 32 bits.

    Raises:
        TempaError: IMAGE_UNREADABLE, IMAGE_FORMAT_UNSUPPORTED (not PNG or TIFF), IMAGE_TOO_LARGE,
            IMAGE_TOO_SMALL, or IMAGE_ASPECT_RATIO when it is not of the picture's shape.
    """
    facts = door.look(path, bounds or Bounds())
    if isinstance(facts, Fault):
        raise facts.error()
    if facts.format not in FORMATS:
        message = f"A depth image is a PNG or a TIFF, not {facts.format}."
        detail = {"input": "depth", "format": facts.format}
        raise TempaError("IMAGE_FORMAT_UNSUPPORTED", message, detail=detail)
    _require_aspect(facts.width / facts.height, picture.width / picture.height)
    try:
        with Image.open(path, formats=[each.upper() for each in FORMATS]) as image:
            depths = image.convert("F") if image.mode != "F" else image.copy()
    except (OSError, ValueError, SyntaxError) as error:
        raise TempaError("IMAGE_UNREADABLE", detail={"input": "depth"}) from error
    small = depths.resize((picture.width, picture.height), Image.Resampling.BOX)
    values = np.asarray(small, np.float64)
    if not np.isfinite(values).all():
        raise TempaError("IMAGE_UNREADABLE", "The depth image holds values that are no numbers.")
    return values


def _require_aspect(found: float, wanted: float) -> None:
    if abs(found / wanted - 1.0) > ASPECT_TOLERANCE:
        message = "The depth image has another shape than the picture, as it stands upright."
        detail = {"input": "depth", "aspect": round(found, 4), "limit": round(wanted, 4)}
        hint = f"Width by height, it has {found:.3g}, and needs the picture's {wanted:.3g}."
        raise TempaError("IMAGE_ASPECT_RATIO", message, hint=hint, detail=detail)
