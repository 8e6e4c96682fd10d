"""A decoded picture, as every engine gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.image.facts import Facts

Mask = Literal["alpha", "border-flood", "model"]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Upright pixels with an alpha that is the foreground.

    - `rgba` (height, width, 4): uint8, C-contiguous, sRGB, straight alpha, row 0 on top. The long side has
      at most 2,048 pixels. Colours go on a little beyond the foreground's edge, and then are its mean, so
      that no filter brings a background's colour in.
    - `mask`: where the alpha is from.
    - `source`: what the file's header showed; its width and height are those of the file.
    """

    rgba: NDArray[np.uint8]
    mask: Mask
    source: Facts

    def __post_init__(self) -> None:
        """Whoever goes on with the pixels may rely on their form."""
        assert self.rgba.ndim == 3, f"{self.rgba.ndim} axes"
        assert self.rgba.shape[2] == 4, f"{self.rgba.shape[2]} channels"
        assert self.rgba.dtype == np.uint8, f"{self.rgba.dtype}"
        assert self.rgba.flags.c_contiguous, "rgba is not contiguous"

    @property
    def height(self) -> int:
        """Rows of `rgba`."""
        return int(self.rgba.shape[0])

    @property
    def width(self) -> int:
        """Columns of `rgba`."""
        return int(self.rgba.shape[1])
