"""Pictures of Gaussians, and what of a picture each Gaussian has made.

Everything here is the same to the bit in every run: order by depth and then by index, every sum in a
fixed order, whatever the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import of_colors
from tempa.engines.splat.raster import projection, tiles
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.raster.projection import NOTHING, RECORD, TILE
from tempa.engines.splat.raster.threads import each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.raster.camera import Camera

Color = tuple[float, float, float]
_RANGE = 32_768  # Gaussians handed out at once
_BANDS = 8  # whose sums wait to be added up: this many times the Gaussians is the most they can be


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A picture as it was drawn, row 0 at the top.

    - `rgb` (height, width, 3): float32, sRGB as blended; premultiplied by alpha, or over a background.
    - `alpha` (height, width): float32, 0 where there is nothing.
    - `depth` (height, width): float32, distance along the camera's axis, the mean by weight; 0 where
      there is nothing.
    """

    rgb: NDArray[np.float32]
    alpha: NDArray[np.float32]
    depth: NDArray[np.float32]

    def over(self, background: Color) -> NDArray[np.float32]:
        """Over a colour, if it was drawn over none."""
        return self.rgb + (1.0 - self.alpha[..., None]) * np.asarray(background, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """What of a cloud is in a camera's picture, nearest first. Rows belong together.

    `order` (m,) are the Gaussians' indices; the rest is as `projection` and `tiles` have it.
    """

    order: NDArray[np.uint32]
    records: NDArray[np.float32]
    boxes: NDArray[np.int32]
    bands: NDArray[np.int16]
    spans: NDArray[np.int16]


def render(
    gaussians: Gaussians, camera: Camera, background: Color | None = None, *, threads: int | None = None
) -> Image:
    """Draw a picture; over a background, or without one premultiplied by its alpha.

    `threads` changes nothing but the time; without it, one for each core this process may use.
    """
    arranged = arrange(gaussians, camera, threads=threads)
    planes = np.empty((tiles.PLANES, *_whole_tiles(camera)), np.float32)

    def draw(band: int) -> None:
        tiles.draw(*_members(arranged, band), arranged.records, arranged.boxes, band, planes)

    each(draw, range(planes.shape[1] // TILE), threads)
    return _developed(planes[:, : camera.height, : camera.width], background)


def back_project(
    gaussians: Gaussians, camera: Camera, images: NDArray[np.float32], *, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each Gaussian has had to do with a picture of `camera`.

    `images` (height, width, c) are any values by pixel. Returns the weight (n,) with which each
    Gaussian has been blended into the picture, summed over its pixels, and the values of the images
    there, summed by that weight, (n, c). Of what is hidden or outside, both are 0.
    """
    assert images.shape[:2] == (camera.height, camera.width), images.shape
    arranged = arrange(gaussians, camera, threads=threads)
    height, width = _whole_tiles(camera)
    planes = np.zeros((images.shape[2] + 1, height, width), np.float32)
    planes[0, : camera.height, : camera.width] = 1.0  # its sum is the weight; beyond the edge nothing counts
    planes[1:, : camera.height, : camera.width] = np.moveaxis(images, 2, 0)
    totals = np.zeros((len(gaussians), len(planes)), np.float64)

    def collect(band: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        listed, touched = _members(arranged, band)
        sums = np.zeros((len(listed), len(planes)), np.float64)
        tiles.collect(listed, touched, arranged.records, arranged.boxes, band, planes, sums)
        return arranged.order[listed], sums

    bands = range(height // TILE)
    for first in bands[::_BANDS]:
        for which, sums in each(collect, bands[first : first + _BANDS], threads):
            totals[which] += sums
    return totals[:, 0].copy(), totals[:, 1:].copy()


def arrange(gaussians: Gaussians, camera: Camera, *, threads: int | None = None) -> Arrangement:
    """Project a cloud into a picture, and sort what is in it."""
    n = len(gaussians)
    records, boxes = np.empty((n, RECORD), np.float32), np.empty((n, 4), np.int32)
    keys = np.empty(n, np.uint64)
    view = np.concatenate((camera.rotation, camera.position[None, :])).astype(np.float64)
    lens = np.array((camera.focal_pixels, camera.width, camera.height), np.float64)

    def project(first: int) -> None:
        stop = min(first + _RANGE, n)
        projection.project(
            gaussians.positions,
            gaussians.scales,
            gaussians.rotations,
            gaussians.opacities,
            gaussians.harmonics,
            view,
            lens,
            first,
            stop,
            records,
            boxes,
            keys,
        )

    each(project, range(0, n, _RANGE), threads)
    keys = np.sort(keys[keys != NOTHING])  # all different: depth above, index below
    return _gathered((keys & np.uint64(0xFFFF_FFFF)).astype(np.uint32), records, boxes, threads)


def _gathered(
    order: NDArray[np.uint32], records: NDArray[np.float32], boxes: NDArray[np.int32], threads: int | None
) -> Arrangement:
    m = len(order)
    arranged = Arrangement(
        order,
        np.empty((m, RECORD), np.float32),
        np.empty((m, 4), np.int32),
        np.empty((m, 2), np.int16),
        np.empty((m, 2), np.int16),
    )

    def gather(first: int) -> None:
        stop = min(first + _RANGE, m)
        tiles.gather(
            order,
            records,
            boxes,
            first,
            stop,
            arranged.records,
            arranged.boxes,
            arranged.bands,
            arranged.spans,
        )

    each(gather, range(0, m, _RANGE), threads)
    return arranged


def _whole_tiles(camera: Camera) -> tuple[int, int]:
    """Height and width, rounded up."""
    return -(-camera.height // TILE) * TILE, -(-camera.width // TILE) * TILE


def _members(arranged: Arrangement, band: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """What touches a band, and which of its tiles."""
    m = len(arranged.order)
    listed, touched = np.empty(m, np.int32), np.empty((m, 2), np.int16)
    count = tiles.members(arranged.bands, arranged.spans, band, listed, touched)
    return listed[:count], touched[:count]


def _developed(planes: NDArray[np.float32], background: Color | None) -> Image:
    alpha = np.float32(1.0) - planes[4]
    depth = np.divide(planes[3], alpha, out=np.zeros_like(alpha), where=alpha > 0.0)
    image = Image(np.ascontiguousarray(np.moveaxis(planes[:3], 0, 2)), alpha, depth)
    return image if background is None else Image(image.over(background), alpha, depth)


def compile() -> None:  # noqa: A001 - that is what it does
    """Have every kernel compiled, or read from the cache of an earlier process. Starts no thread."""
    camera = orbit(0.0, 0.0, 2.0, width=TILE, height=TILE)
    one = of_colors(
        np.zeros((1, 3)), np.full((1, 3), 0.1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.ones(1), np.zeros((1, 3))
    )
    render(one, camera, threads=1)
    back_project(one, camera, np.zeros((TILE, TILE, 1), np.float32), threads=1)
