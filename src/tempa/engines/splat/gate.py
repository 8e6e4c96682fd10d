"""The output gate: what a model or a fit calls done is no result until it has passed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.gaussians import ARRAYS

if TYPE_CHECKING:
    from tempa.engines.splat.gaussians import Gaussians

COUNT_SHARE_MIN = 0.9  # of the Gaussians asked for
FAINT_BELOW = 1.0 / 255.0  # an opacity that shows in no pixel
FAINT_SHARE_MAX = 0.5
LENGTH_TOLERANCE = 1e-3  # of a quaternion: readers take it to be of unit length, and shear where it is not


def accept(gaussians: Gaussians, *, asked: int | None = None) -> dict[str, Any]:
    """Let Gaussians through that a viewer can show, and say what they are like.

    Args:
        gaussians: The result as it is to be written.
        asked: How many were asked for; None where the input decides.

    Returns:
        What they measure, as `measured` has it.

    Raises:
        TempaError: NUMERICAL_FAILURE or DEGENERATE_OUTPUT, with the figure that is wrong in its detail.
    """
    _require_finite(gaussians)
    _require_count(len(gaussians), asked)
    _require_scales(gaussians)
    _require_rotations(gaussians)
    _require_opacities(gaussians)
    found = measured(gaussians)
    if not max(found["extent"]) > 0.0:
        raise _degenerate("All Gaussians lie in one point.", extent=found["extent"])
    return found


def _require_finite(gaussians: Gaussians) -> None:
    counts = {}
    for name in ARRAYS:
        rows = getattr(gaussians, name).reshape(len(gaussians), -1) if len(gaussians) else np.empty((0, 1))
        bad = int(np.count_nonzero(~np.isfinite(rows).all(axis=1)))
        if bad:
            counts[name] = bad
    if counts:
        detail = {"not_finite": counts, "gaussians": len(gaussians)}
        raise TempaError("NUMERICAL_FAILURE", detail=detail)


def _require_count(found: int, asked: int | None) -> None:
    least = 1 if asked is None else max(1, int(np.ceil(COUNT_SHARE_MIN * asked)))
    if found < least:
        raise _degenerate("The result holds too few Gaussians.", gaussians=found, limit=least, asked=asked)


def _require_scales(gaussians: Gaussians) -> None:
    bad = int(np.count_nonzero((gaussians.scales <= 0.0).any(axis=1)))
    if bad:
        raise _degenerate("Gaussians have no size.", scales_not_positive=bad, gaussians=len(gaussians))


def _require_rotations(gaussians: Gaussians) -> None:
    lengths = np.linalg.norm(gaussians.rotations.astype(np.float64), axis=1)
    bad = int(np.count_nonzero(np.abs(lengths - 1.0) > LENGTH_TOLERANCE))
    if bad:
        raise _degenerate(
            "Quaternions are not of unit length.", rotations_not_unit=bad, gaussians=len(gaussians)
        )


def _require_opacities(gaussians: Gaussians) -> None:
    opacities = gaussians.opacities
    outside = int(np.count_nonzero((opacities < 0.0) | (opacities > 1.0)))
    if outside:
        raise _degenerate(
            "Opacities are outside 0 to 1.", opacities_outside=outside, gaussians=len(gaussians)
        )
    share = float(np.count_nonzero(opacities < FAINT_BELOW)) / len(gaussians)
    if share > FAINT_SHARE_MAX:
        raise _degenerate("Most Gaussians are invisible.", faint_share=share, limit=FAINT_SHARE_MAX)


def measured(gaussians: Gaussians) -> dict[str, Any]:
    """What Gaussians, of which there must be one at least, are like.

    `gaussians` (their number), `sh_degree`, `opacity` (min, mean, max), `bounding_box` (least and
    greatest corner of the centres), `extent` (its sides).
    """
    low, high = (end(gaussians.positions, axis=0).astype(np.float64) for end in (np.min, np.max))
    opacities = gaussians.opacities
    return {
        "gaussians": len(gaussians),
        "sh_degree": gaussians.degree,
        "opacity": {
            "min": float(opacities.min()),
            "mean": float(opacities.mean(dtype=np.float64)),
            "max": float(opacities.max()),
        },
        "bounding_box": [low.tolist(), high.tolist()],
        "extent": (high - low).tolist(),
    }


def _degenerate(message: str, **detail: Any) -> TempaError:
    return TempaError("DEGENERATE_OUTPUT", message, detail=detail)
