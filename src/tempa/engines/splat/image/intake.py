"""From a file to a `Picture`: the one call of the engines. Child processes only: it decodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.engines.splat.image import decode, door, foreground
from tempa.engines.splat.image.facts import Bounds, Fault
from tempa.engines.splat.image.matting import Matting
from tempa.engines.splat.image.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def prepare() -> None:
    """What a `Runner.load` calls, so that no child has to load it again. Starts no thread."""
    decode.prepare()


def given(work: Mapping[str, Any]) -> dict[str, Any]:
    """What a work says of its server, as `read` takes it: the limits of pictures, and a matting model."""
    said: dict[str, Any] = {}
    if "bounds" in work:
        said["bounds"] = Bounds(**work["bounds"])
    if "matting" in work:
        model = work["matting"]
        said["matting"] = Matting(model["path"], model["sha256"], tuple(model["mean"]), tuple(model["std"]))
    return said


def read(
    path: Path,
    parameters: Mapping[str, Any],
    *,
    bounds: Bounds | None = None,
    matting: Matting | None = None,
) -> Picture:
    """The picture in a file, upright, in sRGB, at most 2,048 pixels long, with its foreground as alpha.

    Args:
        path: A file with any name; its content says what it is.
        parameters: `mask`: "auto" (what is absent means), "alpha", "border-flood" or "model".
            `flood_tolerance`: how far a background may be from one colour, in CIELAB units (10).
            `frame`: 0 takes the first frame of an animation; null refuses animations. Others are ignored.
        bounds: The server's limits; a file that was fetched by its URL has not been at the door.
        matting: The operator's matting model, if there is one.

    Raises:
        TempaError: IMAGE_UNREADABLE, IMAGE_FORMAT_UNSUPPORTED, IMAGE_TOO_LARGE, IMAGE_TOO_SMALL,
            IMAGE_ASPECT_RATIO, NO_FOREGROUND, MASK_PROVIDER_UNAVAILABLE.
    """
    limits = bounds or Bounds()
    facts = door.look(path, limits, frame=parameters.get("frame"))
    if isinstance(facts, Fault):
        raise facts.error()
    pixels = decode.decode(path, facts, limits)
    mask = str(parameters.get("mask") or "auto")
    tolerance = float(parameters.get("flood_tolerance") or foreground.TOLERANCE)
    rgba, source = foreground.cut_out(pixels, mask, tolerance=tolerance, matting=matting)
    return Picture(rgba, source, facts)
