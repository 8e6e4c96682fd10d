"""A picture of what is being made, for whoever watches: replaced as a whole each time (`tempa.jobs.live`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tempa.engines.splat.raster.camera import DEFAULT_FIELD_OF_VIEW, framing_distance, orbit
from tempa.engines.splat.raster.render import render
from tempa.jobs.live import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians

_SIDE = 256
_RADIUS = 0.75  # of a sphere that holds most of what is in the cube
_YAW_DEGREES, _PITCH_DEGREES = 25.0, 15.0
_BACKGROUND = (0.93, 0.93, 0.94)
_INTERVAL_SECONDS = 0.5  # nobody watches more often; a picture costs some 30 ms


class Live:
    """Draws at most one picture each half second."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        distance = framing_distance(_RADIUS, DEFAULT_FIELD_OF_VIEW)
        self._camera = orbit(_YAW_DEGREES, _PITCH_DEGREES, distance, width=_SIDE, height=_SIDE)
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time for one."""
        return time.monotonic() >= self._next

    def draw(self, gaussians: Gaussians) -> None:
        """Draw them; what is not finite, early in a sampling, is left out."""
        drawn = render(_finite(gaussians), self._camera, _BACKGROUND).rgb
        pixels = np.clip(np.rint(drawn * 255), 0, 255).astype(np.uint8)
        unfinished = self._file.with_suffix(".part")
        Image.fromarray(pixels).save(unfinished, "png", compress_level=1)
        unfinished.replace(self._file)
        self._next = time.monotonic() + _INTERVAL_SECONDS

    def end(self) -> None:
        """Take the picture away: what a job keeps is in its report."""
        self._file.unlink(missing_ok=True)


def _finite(gaussians: Gaussians) -> Gaussians:
    whole = np.isfinite(gaussians.opacities)
    for array in (gaussians.positions, gaussians.scales, gaussians.rotations, gaussians.harmonics[:, 0]):
        whole &= np.isfinite(array).all(axis=1)
    return gaussians.take(whole)
