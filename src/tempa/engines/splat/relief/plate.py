"""The picture as it is modelled: a square grid of straight colours and an alpha, nothing bleeding in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat.relief.spreading import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILLS = 0.94  # of the square's side is taken by the subject's longer side: soft edges need some room
SOLID = 0.5  # of alpha: what covers more is the subject, as the gate and the eye have it
SHOWN = 1.0 / 16.0  # of alpha: what shows less at its fullest place is passed over
SIDE_STEP = 8  # cells of the quadtree's coarsest level: a side is a multiple of it
SIDE_MAX = 1536
TRUSTED = (
    0.9,
    0.995,
)  # of alpha: below the first a pixel's own colour counts for nothing, above it is its own


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Which square of a picture is modelled: corner and side in the picture's pixels; it may stick out."""

    left: int
    top: int
    side: int
    covered: float  # share of the square where the subject shows at all
    share: float  # the square's side beside the picture's longer side

    @property
    def box(self) -> tuple[int, int, int, int]:
        """As Pillow has boxes."""
        return self.left, self.top, self.left + self.side, self.top + self.side


@dataclass(frozen=True, slots=True, eq=False)
class Plate:
    """A square picture of `side` x `side` cells. Colours are straight (not times alpha), sRGB, 0 to 1.

    - `colors` (side, side, 3) float32: under a soft edge and beyond it, those of the solid subject nearby.
    - `alpha` (side, side) float32.
    """

    colors: NDArray[np.float32]
    alpha: NDArray[np.float32]

    @property
    def side(self) -> int:
        """Cells along one side."""
        return len(self.alpha)

    @property
    def solid(self) -> NDArray[np.bool_]:
        """Where the subject is."""
        return self.alpha > SOLID


def framed(alpha: NDArray[np.uint8]) -> Frame:
    """The square around what a picture's alpha (h, w) shows.

    Raises:
        TempaError: NO_FOREGROUND when no pixel covers more than half.
    """
    solid = alpha > 255 * SOLID
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    if not rows.size:
        raise TempaError("NO_FOREGROUND")
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    side = max(8, math.ceil(max(bottom - top, right - left) / FILLS))
    covered = float(np.count_nonzero(alpha >= 255 * SHOWN)) / side**2
    corner = int(left + right - side) // 2, int(top + bottom - side) // 2
    return Frame(*corner, side, covered, side / max(alpha.shape))


def side_for(cells: float, frame: Frame) -> int:
    """The side of a grid of which the subject covers about `cells` cells."""
    side = math.sqrt(cells / frame.covered)
    return int(min(max(math.ceil(side / SIDE_STEP), 4) * SIDE_STEP, SIDE_MAX))


def plate(rgba: NDArray[np.uint8], frame: Frame, side: int) -> Plate:
    """Resample the square of a picture (h, w, 4), straight alpha, to a grid of this side."""
    # Pillow weighs colours by alpha where it resamples RGBA; what it pads with is transparent.
    square = Image.fromarray(rgba).crop(frame.box).resize((side, side), Image.Resampling.BICUBIC)
    values = np.asarray(square, np.float32) / np.float32(255.0)
    alpha = np.ascontiguousarray(values[..., 3])
    return Plate(_bled(values[..., :3], alpha), alpha)


def _bled(colors: NDArray[np.float32], alpha: NDArray[np.float32]) -> NDArray[np.float32]:
    """Colours that know nothing of the background: a soft pixel's own give way to its solid neighbours'."""
    low, high = TRUSTED
    trust = np.clip((alpha - low) / (high - low), 0.0, 1.0)
    if not trust.any():
        trust = alpha
    return spread(colors, trust)
