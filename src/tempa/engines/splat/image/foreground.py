"""What stands out in a picture, as its alpha: the picture's own, a flood from the border, or a model's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.image import edges, flood, matting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tempa.engines.splat.image.flood import Border
    from tempa.engines.splat.image.matting import Matting
    from tempa.engines.splat.image.picture import Mask

MASKS = ("auto", "alpha", "border-flood", "model")
TOLERANCE = 10.0  # CIELAB: 2.3 is just noticed, the noise of a JPEG at quality 75 is 3 to 5

_ASKED_FOR: Mapping[str, Mask] = {"alpha": "alpha", "border-flood": "border-flood", "model": "model"}
_CLEAR = 128  # an alpha below this shows more of what is behind
_CLEAR_SHARE_MIN = 0.005  # fewer clear pixels are rounded corners, not a cut-out
_SHARE_MIN = 0.001  # of the frame: 1 pixel of 32 x 32
_SHARE_MAX = 0.995
_HINT = "Send a PNG with a transparent background, or a picture before a plain one."


def cut_out(
    pixels: NDArray[np.uint8], mask: str, *, tolerance: float = TOLERANCE, matting: Matting | None = None
) -> tuple[NDArray[np.uint8], Mask]:
    """`pixels` (height, width, 4) with the foreground as alpha and clean colours at its edge; and whence.

    Raises TempaError: NO_FOREGROUND, whose `detail.reason` is "transparent", "plain", "too_small" or
    "fills_frame"; MASK_PROVIDER_UNAVAILABLE.
    """
    border = flood.survey(pixels, tolerance) if mask in {"auto", "border-flood"} else None
    way = _way(pixels, mask, border, matting)
    if way == "alpha":
        cut = edges.cleaned(pixels)
    elif way == "model":
        cut = edges.cleaned(_with_alpha(pixels, _modeled(pixels, matting)))
    else:
        assert border is not None, "the ways that flood have looked at the border"
        cut = _flooded(pixels, border)
    _check(cut[..., 3], way)
    return edges.extended(cut), way


def _way(pixels: NDArray[np.uint8], mask: str, border: Border | None, model: Matting | None) -> Mask:
    """The one that was asked for, or the first that fits: a model only where nothing plainer does."""
    if border is None or mask != "auto":
        return _ASKED_FOR[mask]
    if np.mean(pixels[..., 3] < _CLEAR) >= _CLEAR_SHARE_MIN:
        return "alpha"
    if border.is_plain:
        return "border-flood"
    if model is None:
        raise TempaError(
            "MASK_PROVIDER_UNAVAILABLE",
            "The picture has no transparency and no plain background, and this server has no matting model.",
            hint=f'{_HINT} "mask": "border-flood" tries all the same.',
        )
    return "model"


def _flooded(pixels: NDArray[np.uint8], border: Border) -> NDArray[np.uint8]:
    found = flood.background(pixels, border)
    if found.mask.all():
        raise _nothing("plain", "The picture shows one plain colour.", 0.0, _SHARE_MIN)
    return edges.unmixed(pixels, ~found.mask, found.colors)


def _modeled(pixels: NDArray[np.uint8], model: Matting | None) -> NDArray[np.uint8]:
    if model is None:
        raise TempaError(
            "MASK_PROVIDER_UNAVAILABLE",
            "This server has no matting model.",
            hint=f'{_HINT} Then "mask": "auto" needs no model.',
        )
    return matting.alpha(pixels, model)


def _with_alpha(pixels: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What was clear before stays so."""
    masked = pixels.copy()
    masked[..., 3] = np.minimum(masked[..., 3], alpha)
    return masked


def _check(alpha: NDArray[np.uint8], way: Mask) -> None:
    share = float(np.mean(alpha, dtype=np.float64) / 255)
    if not alpha.any():
        raise _nothing("transparent", "The picture is wholly transparent.", share, _SHARE_MIN)
    if share < _SHARE_MIN:
        message = f"What stands out fills {share:.2%} of the picture; it needs {_SHARE_MIN:.1%}."
        raise _nothing("too_small", message, share, _SHARE_MIN)
    if alpha.min() == 255 or (way != "alpha" and share > _SHARE_MAX):
        what = {"alpha": "It has no transparent pixel", "model": "The matting model left nothing out"}
        message = f"{what.get(way, 'No background joins its border')}: what stands out fills the picture."
        raise _nothing("fills_frame", message, share, _SHARE_MAX)


def _nothing(reason: str, message: str, actual: float, limit: float) -> TempaError:
    detail: dict[str, Any] = {"reason": reason, "limit": limit, "actual": round(actual, 6)}
    return TempaError("NO_FOREGROUND", message, hint=_HINT, detail=detail)
