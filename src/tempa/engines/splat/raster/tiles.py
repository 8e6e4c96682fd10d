"""Drawing ellipses front to back, tile by tile, and the way back from a picture to what it shows.

A band is a row of tiles. It has one list of the ellipses that touch it, nearest first, and each of its
tiles goes through that list, part by part, until nothing behind can show. So no list is longer than there are
Gaussians, however large they are, and a tile's pixels depend on nothing but the Gaussians: not on who
draws which band, nor on how many do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.raster.jit import inlined, kernel
from tempa.engines.splat.raster.projection import (
    ACROSS,
    ALPHA_CUT,
    BLUE,
    BOTTOM,
    COLUMN,
    DEPTH,
    DOWN,
    GREEN,
    LEFT,
    OPACITY,
    RED,
    RIGHT,
    ROW,
    SKEW,
    TILE,
    TOP,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPAQUE_BELOW = np.float32(1e-4)  # transmittance: a pixel that lets less through is done
ALPHA_MAX = np.float32(0.99)  # of one Gaussian, as in the 3DGS reference: none hides all behind it alone
PART = 512  # of a band's list that is looked through before a tile is asked whether it is full
PLANES = 5  # of a picture as it is drawn: red, green, blue, depth by weight, transmittance
_CUT = np.float32(ALPHA_CUT)
# exp(-s) for 0 <= s <= 0.7, by weighted least squares: relative error 8e-8, so 7e-7 in its eighth power.
# Products and sums only: vectors of any machine do them alike, which `exp` of a C library does not.
_E0, _E1, _E2 = (
    np.float32(0.9999999205167924),
    np.float32(-0.9999925393883989),
    np.float32(0.4998825877492108),
)
_E3, _E4, _E5 = (
    np.float32(-0.1659739761944053),
    np.float32(0.039772562130761635),
    np.float32(-0.005846760001051374),
)
_S_MAX = np.float32(0.7)  # exp(-8 * 0.7) < 1/255: whatever lies beyond is cut
_HALF = np.float32(0.5)
_NOTHING = np.float32(0.0)


@kernel
def gather(
    order: NDArray[np.uint32],
    records: NDArray[np.float32],
    boxes: NDArray[np.int32],
    start: int,
    stop: int,
    sorted_records: NDArray[np.float32],
    sorted_boxes: NDArray[np.int32],
    bands: NDArray[np.int16],
    spans: NDArray[np.int16],
) -> None:
    """Copy the places start to stop of the order.

    `bands` (m, 2) are the first band that an ellipse touches, and the one past the last; `spans` (m, 2)
    the same for the tiles of a band.
    """
    for place in range(start, stop):
        i = order[place]
        for k in range(records.shape[1]):
            sorted_records[place, k] = records[i, k]
        for k in range(4):
            sorted_boxes[place, k] = boxes[i, k]
        bands[place, 0] = boxes[i, TOP] // TILE
        bands[place, 1] = (boxes[i, BOTTOM] + TILE - 1) // TILE
        spans[place, 0] = boxes[i, LEFT] // TILE
        spans[place, 1] = (boxes[i, RIGHT] + TILE - 1) // TILE


@kernel
def members(
    bands: NDArray[np.int16],
    spans: NDArray[np.int16],
    band: int,
    listed: NDArray[np.int32],
    touched: NDArray[np.int16],
) -> int:
    """List the places of what touches a band, in order, and the tiles of it; returns how many.

    Each place is written, and overwritten unless it belongs: there is no branch to be guessed wrong.
    """
    count = 0
    for place in range(len(bands)):
        listed[count] = place
        touched[count, 0], touched[count, 1] = spans[place, 0], spans[place, 1]
        count += (bands[place, 0] <= band) & (band < bands[place, 1])
    return count


@inlined
def _pick(
    listed: NDArray[np.int32], touched: NDArray[np.int16], start: int, tile: int, picked: NDArray[np.int32]
) -> int:
    """Of a part of a band's list, the numbers of what touches a tile; returns how many."""
    count = 0
    for number in range(start, min(start + PART, len(listed))):
        picked[count] = number
        count += (touched[number, 0] <= tile) & (tile < touched[number, 1])
    return count


@inlined
def _alpha(s: np.float32, opacity: np.float32) -> np.float32:
    """Of a Gaussian at a pixel: 0 where it is too faint to show."""
    s = min(s, _S_MAX)
    e = _E0 + s * (_E1 + s * (_E2 + s * (_E3 + s * (_E4 + s * _E5))))
    e *= e
    e *= e
    alpha = min(opacity * (e * e), ALPHA_MAX)
    return alpha if alpha >= _CUT else _NOTHING


@kernel
def draw(
    listed: NDArray[np.int32],
    touched: NDArray[np.int16],
    records: NDArray[np.float32],
    boxes: NDArray[np.int32],
    band: int,
    planes: NDArray[np.float32],
) -> None:
    """Draw a band into `planes` (PLANES, height, width), both sides whole tiles."""
    first_row = band * TILE
    tile = np.empty((PLANES, TILE, TILE), np.float32)
    picked = np.empty(PART, np.int32)
    for first_column in range(0, planes.shape[2], TILE):
        tile[:4] = _NOTHING
        tile[4] = np.float32(1.0)
        for start in range(0, len(listed), PART):
            for k in range(_pick(listed, touched, start, first_column // TILE, picked)):
                place = listed[picked[k]]
                _draw_one(records[place], boxes[place], first_row, first_column, tile)
            if np.max(tile[4]) < OPAQUE_BELOW:
                break
        planes[:, first_row : first_row + TILE, first_column : first_column + TILE] = tile


@inlined
def _draw_one(
    record: NDArray[np.float32],
    box: NDArray[np.int32],
    first_row: int,
    first_column: int,
    tile: NDArray[np.float32],
) -> None:
    across, opacity = record[ACROSS], record[OPACITY]
    red, green, blue, depth = record[RED], record[GREEN], record[BLUE], record[DEPTH]
    left = np.float32(first_column) + _HALF - record[COLUMN]
    for row in range(max(box[TOP] - first_row, 0), min(box[BOTTOM] - first_row, TILE)):
        y = np.float32(first_row + row) + _HALF - record[ROW]
        skew = record[SKEW] * y
        down = record[DOWN] * y
        down *= down
        for x in range(TILE):
            u = across * (left + np.float32(x)) + skew
            through = tile[4, row, x]
            weight = _alpha(u * u + down, opacity) * through
            weight = weight if through >= OPAQUE_BELOW else _NOTHING
            tile[0, row, x] += weight * red
            tile[1, row, x] += weight * green
            tile[2, row, x] += weight * blue
            tile[3, row, x] += weight * depth
            tile[4, row, x] = through - weight


@kernel
def collect(
    listed: NDArray[np.int32],
    touched: NDArray[np.int16],
    records: NDArray[np.float32],
    boxes: NDArray[np.int32],
    band: int,
    images: NDArray[np.float32],
    sums: NDArray[np.float64],
) -> None:
    """Add up what the ellipses of a band's list have of `images` (c, height, width): `sums` (m, c).

    That is, for each image, its values in the band times the weight with which the ellipse has gone
    into the picture there. Sides are whole tiles.
    """
    first_row, channels = band * TILE, len(images)
    # One array, as compilers must take two for one that overlaps itself: through at 0, the weights of
    # a row at 1, 0, and then by image its values and (a row of) sums.
    tile = np.zeros((2 + 2 * channels, TILE, TILE), np.float32)
    picked = np.empty(PART, np.int32)
    for first_column in range(0, images.shape[2], TILE):
        tile[0] = np.float32(1.0)
        for channel in range(channels):
            tile[2 + 2 * channel] = images[
                channel, first_row : first_row + TILE, first_column : first_column + TILE
            ]
        for start in range(0, len(listed), PART):
            for k in range(_pick(listed, touched, start, first_column // TILE, picked)):
                place = listed[picked[k]]
                _collect_one(records[place], boxes[place], first_row, first_column, tile, sums[picked[k]])
            if np.max(tile[0]) < OPAQUE_BELOW:
                break


@inlined
def _collect_one(
    record: NDArray[np.float32],
    box: NDArray[np.int32],
    first_row: int,
    first_column: int,
    tile: NDArray[np.float32],
    sums: NDArray[np.float64],
) -> None:
    across, opacity = record[ACROSS], record[OPACITY]
    left = np.float32(first_column) + _HALF - record[COLUMN]
    for row in range(max(box[TOP] - first_row, 0), min(box[BOTTOM] - first_row, TILE)):
        y = np.float32(first_row + row) + _HALF - record[ROW]
        skew = record[SKEW] * y
        down = record[DOWN] * y
        down *= down
        for x in range(TILE):
            u = across * (left + np.float32(x)) + skew
            through = tile[0, row, x]
            weight = _alpha(u * u + down, opacity) * through
            weight = weight if through >= OPAQUE_BELOW else _NOTHING
            tile[1, 0, x] = weight
            tile[0, row, x] = through - weight
        for channel in range(len(sums)):
            for x in range(TILE):
                tile[3 + 2 * channel, 0, x] += tile[1, 0, x] * tile[2 + 2 * channel, row, x]
    for channel in range(len(sums)):
        lanes = tile[3 + 2 * channel, 0]
        for half in (8, 4, 2):
            for x in range(half):
                lanes[x] += lanes[x + half]
        sums[channel] += lanes[0] + lanes[1]
        lanes[:] = _NOTHING
