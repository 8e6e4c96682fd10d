"""The request's picture, with the object cut out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat.image import decode, door, foreground, intake
from tempa.engines.splat.image.facts import Bounds, Fault
from tempa.engines.splat.image.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Matting = Callable[[Any], Any]  # a Pillow picture without alpha to one with


def read(path: Path, parameters: Mapping[str, Any], matting: Matting | None) -> Picture:
    """As `image.intake.read`, with the checkout's own matting network where that would want a model.

    Raises:
        TempaError: as `image.intake.read`.
    """
    if parameters["mask"] == "model" and matting is not None:
        return _matted(path, parameters, matting)
    try:
        return intake.read(path, parameters)
    except TempaError as error:
        if error.code != "MASK_PROVIDER_UNAVAILABLE" or matting is None:
            raise
    return _matted(path, parameters, matting)


def _matted(path: Path, parameters: Mapping[str, Any], matting: Matting) -> Picture:
    limits = Bounds()
    facts = door.look(path, limits, frame=parameters.get("frame"))
    if isinstance(facts, Fault):
        raise facts.error()
    pixels = decode.decode(path, facts, limits)
    cut = np.array(matting(Image.fromarray(pixels).convert("RGB")), np.uint8)
    cut[..., 3] = np.minimum(cut[..., 3], pixels[..., 3])
    rgba, _ = foreground.cut_out(np.ascontiguousarray(cut), "alpha")
    return Picture(rgba, "model", facts)
