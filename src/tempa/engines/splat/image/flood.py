"""The background that joins the border, by colour.

Its colour may change slowly over the picture, as light on a wall does: it is a polynomial of degree 2, fitted
to the border in CIELAB. What is enclosed by the foreground stays foreground, whatever its colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import ndimage

from tempa.engines.splat.image.lab import lab

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLEAR = 128  # what is clear already belongs to the background and tells no colour
_PLAIN_SHARE_MIN = 0.7  # of the border; what stands out may touch a side
_ROUNDS = 6
_SPECK_SHARE = 0.01  # of the largest piece: what is smaller is noise, or a mark on the wall
_FIT_PIXELS_MIN = 32


@dataclass(frozen=True, slots=True, eq=False)
class Border:
    """The two outermost rings of pixels, and which of them show the background.

    - `at` (2, n): rows and columns. `inliers` (n,).
    - `share`: of those that are not clear, how many are inliers.
    """

    at: NDArray[np.intp]
    inliers: NDArray[np.bool_]
    share: float
    tolerance: float

    @property
    def is_plain(self) -> bool:
        """Whether most of it has the colour of one background."""
        return self.share >= _PLAIN_SHARE_MIN


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """`mask` (height, width): where it is."""

    mask: NDArray[np.bool_]
    _surface: Surface

    def colors(self, at: NDArray[np.intp]) -> NDArray[np.float32]:
        """Its sRGB colours at flat indices, behind the foreground too: (n, 3), 0 to 255."""
        return self._surface.at(np.array(np.divmod(at, self.mask.shape[1])))


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Colours over a picture of `shape`: a polynomial, believed within `low` and `high`."""

    shape: tuple[int, ...]
    coefficients: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def fitted(cls, at: NDArray[np.intp], colors: NDArray[Any], shape: tuple[int, ...]) -> Surface:
        """By least squares, to colours (n, 3) at places (2, n)."""
        exact = colors.astype(np.float64)
        solved = np.linalg.lstsq(_basis(at, shape), exact, rcond=None)[0]
        low, high = exact.min(axis=0), exact.max(axis=0)
        span = high - low  # the middle of a wall may be as much lighter again than its border
        return cls(shape, np.asarray(solved, np.float64), low - span, high + span)

    def at(self, places: NDArray[np.intp]) -> NDArray[np.float32]:
        """At some places (2, n)."""
        colors = np.clip(_basis(places, self.shape) @ self.coefficients, self.low, self.high)
        return colors.astype(np.float32)

    def everywhere(self) -> NDArray[np.float32]:
        """(height, width, 3)."""
        y = np.linspace(-1.0, 1.0, self.shape[0], dtype=np.float32)[:, None, None]
        x = np.linspace(-1.0, 1.0, self.shape[1], dtype=np.float32)[None, :, None]
        one, by_x, by_y, by_xx, by_xy, by_yy = self.coefficients.astype(np.float32)
        colors = (one + y * (by_y + y * by_yy)) + (by_x + y * by_xy) * x
        colors += by_xx * (x * x)
        np.clip(colors, self.low.astype(np.float32), self.high.astype(np.float32), out=colors)
        return np.asarray(colors, np.float32)


def survey(pixels: NDArray[np.uint8], tolerance: float) -> Border:
    """What the border of `pixels` (height, width, 4) shows, within `tolerance` of a background's colour.

    Begins at the median and looks closer round by round, so that what crosses the border has no say.
    """
    at = _rings(pixels.shape)
    usable = pixels[at[0], at[1], 3] >= _CLEAR
    if not usable.any():
        return Border(at, ~usable, 1.0, tolerance)  # clear all round
    colors = lab(pixels[at[0], at[1], :3]).astype(np.float64)
    residual = np.linalg.norm(colors - np.median(colors[usable], axis=0), axis=1)
    inliers = usable & (residual <= max(4 * tolerance, float(np.median(residual[usable]))))
    basis = _basis(at, pixels.shape)
    for _ in range(_ROUNDS):
        if inliers.sum() < _FIT_PIXELS_MIN:
            return Border(at, usable, 0.0, tolerance)
        coefficients = np.linalg.lstsq(basis[inliers], colors[inliers], rcond=None)[0]
        closer = usable & (np.linalg.norm(colors - basis @ coefficients, axis=1) <= tolerance)
        if (closer == inliers).all():
            break
        inliers = closer
    if not inliers.any():
        return Border(at, usable, 0.0, tolerance)
    return Border(at, inliers, float(inliers.sum() / usable.sum()), tolerance)


def background(pixels: NDArray[np.uint8], border: Border) -> Background:
    """What joins the border of `pixels` (height, width, 4) and is near the colour that it shows."""
    places = border.at[:, border.inliers]
    colors = pixels[places[0], places[1], :3]
    likeness = Surface.fitted(places, lab(colors), pixels.shape)
    near = np.square(lab(pixels[..., :3]) - likeness.everywhere()).sum(axis=2) <= np.float32(
        border.tolerance**2
    )
    near |= pixels[..., 3] < _CLEAR
    return Background(_without_specks(_joined_to_border(near)), Surface.fitted(places, colors, pixels.shape))


def _rings(shape: tuple[int, ...]) -> NDArray[np.intp]:
    inner = np.ones(shape[:2], bool)
    inner[2:-2, 2:-2] = False
    return np.array(np.nonzero(inner))


def _basis(at: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    y, x = (2.0 * at[axis] / (shape[axis] - 1) - 1.0 for axis in (0, 1))
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)


def _joined_to_border(near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    labels, count = ndimage.label(near)
    rows, columns = _rings(near.shape)
    joined = np.zeros(count + 1, bool)
    joined[labels[rows, columns]] = True
    joined[0] = False
    mask: NDArray[np.bool_] = joined[labels]
    return mask


def _without_specks(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Small pieces of foreground count as background."""
    labels, count = ndimage.label(~mask)
    if not count:
        return mask
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    sizes[0] = 0
    kept = sizes >= _SPECK_SHARE * sizes.max()
    kept[0] = False
    cleaned: NDArray[np.bool_] = ~kept[labels]
    return cleaned
