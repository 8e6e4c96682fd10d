"""How alike two pictures are, how alike two outlines, and how much light stands where none should be.

Pictures are float arrays, (height, width, 3), 0 to 1; outlines are boolean, (height, width).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import binary_dilation, gaussian_filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

PSNR_MOST = 100.0  # dB: of pictures that are the same
SSIM_SIGMA = 1.5  # px, of the window of Wang et al. (2004); 11 px wide
SSIM_TRUNCATE = 5.0 / SSIM_SIGMA
SSIM_FLOORS = (0.01**2, 0.03**2)
EDGE_PIXELS = 1  # a drawn edge is a pixel wide: half of its light is outside by right


def psnr(found: NDArray[np.floating], true: NDArray[np.floating]) -> float:
    """Peak signal to noise in dB, the peak being 1."""
    error = float(np.mean((np.asarray(found, np.float64) - true) ** 2))
    return PSNR_MOST if error <= 0.0 else min(PSNR_MOST, -10.0 * math.log10(error))


def ssim(found: NDArray[np.floating], true: NDArray[np.floating]) -> float:
    """Structural similarity, Wang et al., "Image Quality Assessment" (2004): the mean of all pixels."""
    a, b = np.asarray(found, np.float64), np.asarray(true, np.float64)
    mean_a, mean_b = _windowed(a), _windowed(b)
    variance_a, variance_b = _windowed(a * a) - mean_a**2, _windowed(b * b) - mean_b**2
    together = _windowed(a * b) - mean_a * mean_b
    c1, c2 = SSIM_FLOORS
    likeness = (2.0 * mean_a * mean_b + c1) * (2.0 * together + c2)
    return float(np.mean(likeness / ((mean_a**2 + mean_b**2 + c1) * (variance_a + variance_b + c2))))


def _windowed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    out: NDArray[np.float64] = gaussian_filter(
        values, (SSIM_SIGMA, SSIM_SIGMA, 0.0), truncate=SSIM_TRUNCATE, mode="reflect"
    )
    return out


def overlap(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """Intersection over union of two outlines; of two that are empty, 1."""
    union = int(np.count_nonzero(found | true))
    return 1.0 if union == 0 else float(np.count_nonzero(found & true)) / union


def light_outside(rgb: NDArray[np.floating], true: NDArray[np.bool_]) -> float:
    """The share of a picture's energy that lies outside the true outline, 0 to 1.

    `rgb` is premultiplied, over nothing; energy is the sum of its squares. The outline's own pixel counts
    as inside. This is the strictest measure of a fringe: a subject whose shape was guessed too thick has
    light outside as well.
    """
    energy = np.sum(np.asarray(rgb, np.float64) ** 2, axis=-1)
    inside = binary_dilation(true, np.ones((3, 3), np.bool_), iterations=EDGE_PIXELS)
    total = float(energy.sum())
    return 0.0 if total <= 0.0 else float(energy[~inside].sum()) / total


def foreign_light(rgb: NDArray[np.floating], channel: int) -> float:
    """The share of a picture's light that is of a channel its subject has nothing of, 0 to 1.

    For a picture whose subject has no blue before a ground that is nothing but blue: every bit of blue in a
    new view has come over the edge. What is measured is the fringe itself, apart from the shape.
    """
    light = np.maximum(np.asarray(rgb, np.float64), 0.0).sum(axis=(0, 1))
    total = float(light.sum())
    return 0.0 if total <= 0.0 else float(light[channel]) / total
