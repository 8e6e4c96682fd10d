"""Fitting what the camera sees to the picture, by what the rasteriser says each Gaussian did to it.

Colours are compared straight, never over a background: at a soft edge, where a picture's pixel is part
background, a fit of what is blended makes the edge's Gaussians as bright as the background is, and that
shows as a fringe from every other side. Coverage is fitted by opacity alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import SH_C0, joined
from tempa.engines.splat.raster.render import back_project, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.raster.camera import Camera
    from tempa.engines.splat.relief.plate import Plate

ROUNDS = 3
COLOR_STEP = 1.3
OPACITY_STEP = 0.8
OPACITY_LEAST = 0.006  # lower, a Gaussian would no longer be drawn, and could not come back
OPACITY_MOST = 0.99
SEEN = 0.02  # of alpha: below it, a rendered pixel has no colour to compare
WEIGHT_LEAST = 1e-3  # px: what is hidden is left as it is
OVERSHOOT = 0.15  # beyond the colours of its own neighbourhood: a sharpening that no other view betrays


def fit(
    parts: Sequence[Gaussians],
    camera: Camera,
    target: Plate,
    *,
    rounds: int = ROUNDS,
    threads: int | None = None,
) -> Gaussians:
    """Front, back and rim, joined, so that they look like `target`, which is of the camera's size.

    The front gets its colours, front and back their opacities: the back is seen where there is a hole in
    the front. The rim stays as it is: what shows of it would be faded out, and the seam be open again.
    """
    front, back = len(parts[0]), len(parts[1])
    gaussians = joined(parts)
    low, high = _bounds(gaussians)
    for _ in range(rounds):
        drawn = render(gaussians, camera, threads=threads)
        differences = _differences(drawn.rgb, drawn.alpha, target)
        weight, sums = back_project(gaussians, camera, differences, threads=threads)
        sums[front:, :4] = weight[front + back :] = 0.0
        gaussians = _corrected(gaussians, weight, sums, low, high)
    return gaussians


def _bounds(gaussians: Gaussians) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    colors = gaussians.colors
    return np.maximum(colors - OVERSHOOT, 0.0), np.minimum(colors + OVERSHOOT, 1.0)


def _differences(rgb: NDArray[np.float32], alpha: NDArray[np.float32], target: Plate) -> NDArray[np.float32]:
    """By pixel: the missing colour, weighed by the picture's alpha; that alpha; how much of it is missing."""
    seen = np.where(alpha > SEEN, target.alpha, 0.0)[..., None]
    straight = rgb / np.maximum(alpha, SEEN)[..., None]
    missing = (target.alpha - alpha)[..., None]
    return np.concatenate(((target.colors - straight) * seen, seen, missing), axis=2).astype(np.float32)


def _corrected(
    gaussians: Gaussians,
    weight: NDArray[np.float64],
    sums: NDArray[np.float64],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
) -> Gaussians:
    shown = sums[:, 3] > WEIGHT_LEAST
    step = np.where(shown, COLOR_STEP / np.maximum(sums[:, 3], WEIGHT_LEAST), 0.0)
    colors = np.clip(gaussians.colors + step[:, None] * sums[:, :3], low, high)
    drawn = weight > WEIGHT_LEAST
    change = np.where(drawn, OPACITY_STEP * sums[:, 4] / np.maximum(weight, WEIGHT_LEAST), 0.0)
    opacities = np.where(
        drawn, np.clip(gaussians.opacities + change, OPACITY_LEAST, OPACITY_MOST), gaussians.opacities
    )
    harmonics = (colors.astype(np.float64) - 0.5) / SH_C0
    return replace(
        gaussians,
        opacities=opacities.astype(np.float32),
        harmonics=np.ascontiguousarray(harmonics[:, None, :], np.float32),
    )
