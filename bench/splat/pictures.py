"""The fixed set of eight pictures, made here: hard in different ways, and the same on every machine.

    python -m bench.splat.pictures FOLDER     # write them as PNG, to look at

Six have an alpha; `planet` and `pear` stand before a plain ground and have none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Plane = NDArray[np.float64]

SIDE = 768
FINE = 3  # outlines are drawn so many times larger, and averaged
GROUND = (0.93, 0.93, 0.91)
LIGHT = np.array((-0.45, 0.6, 0.66))
LETTERS: Mapping[str, Sequence[Sequence[tuple[float, float]]]] = {
    "T": [[(0, 0), (1, 0)], [(0.5, 0), (0.5, 1)]],
    "E": [[(1, 0), (0, 0), (0, 1), (1, 1)], [(0, 0.5), (0.8, 0.5)]],
    "M": [[(0, 1), (0, 0), (0.5, 0.6), (1, 0), (1, 1)]],
    "P": [[(0, 1), (0, 0), (1, 0), (1, 0.5), (0, 0.5)]],
    "A": [[(0, 1), (0.5, 0), (1, 1)], [(0.22, 0.6), (0.78, 0.6)]],
}


def grid() -> tuple[Plane, Plane]:
    """Places to the right and up, -1 to 1, at the pixels' centres."""
    line = (np.arange(SIDE) + 0.5) / SIDE * 2.0 - 1.0
    return np.meshgrid(line, -line)


def noise(seed: int, coarsest: int, octaves: int, fall: float = 0.5) -> Plane:
    """Value noise, 0 to 1: `octaves` layers of random grids, each twice as fine and `fall` as strong."""
    dice = np.random.default_rng(seed)
    total, weight, sums = np.zeros((SIDE, SIDE)), 1.0, 0.0
    for octave in range(octaves):
        cells = coarsest << octave
        layer = Image.fromarray(dice.random((cells, cells)).astype(np.float32))
        total += weight * np.asarray(layer.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float64)
        sums += weight
        weight *= fall
    return np.clip(total / sums, 0.0, 1.0)


def drawn(draw: Callable[[ImageDraw.ImageDraw, float], None]) -> Plane:
    """The coverage, 0 to 1, of what is drawn in white; `draw` gets the pen, and how many pixels are 1."""
    large = Image.new("L", (SIDE * FINE, SIDE * FINE))
    draw(ImageDraw.Draw(large), SIDE * FINE / 2.0)
    small = large.resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.asarray(small, np.float64) / 255.0


def polygon(*corners: tuple[float, float]) -> Plane:
    """The coverage of a polygon."""
    return drawn(lambda pen, unit: pen.polygon([((1 + x) * unit, (1 - y) * unit) for x, y in corners], 255))


def ellipse(x: float, y: float, across: float, down: float) -> Plane:
    """The coverage of an ellipse by its centre and its half axes."""
    box = (x - across, y + down, x + across, y - down)
    return drawn(
        lambda pen, unit: pen.ellipse(
            ((1 + box[0]) * unit, (1 - box[1]) * unit, (1 + box[2]) * unit, (1 - box[3]) * unit), 255
        )
    )


def lit(normals: NDArray[np.float64], shine: float = 0.0) -> Plane:
    """How bright a surface of these unit normals (h, w, 3) is."""
    light = LIGHT / np.linalg.norm(LIGHT)
    facing = np.maximum(normals @ light, 0.0)
    between = light + np.array((0.0, 0.0, 1.0))
    half = between / np.linalg.norm(between)
    shining: Plane = 0.3 + 0.7 * facing + shine * np.maximum(normals @ half, 0.0) ** 40
    return shining


def mixed(low: Sequence[float], high: Sequence[float], share: Plane) -> NDArray[np.float64]:
    """Between two colours."""
    return np.asarray(low) * (1.0 - share[..., None]) + np.asarray(high) * share[..., None]


def rgba(colors: NDArray[np.float64], alpha: Plane) -> NDArray[np.uint8]:
    """As a file has it; what does not show is black."""
    shown = np.where(alpha[..., None] > 0.0, np.clip(colors, 0.0, 1.0), 0.0)
    return np.rint(255.0 * np.dstack((shown, np.clip(alpha, 0.0, 1.0)))).astype(np.uint8)


def rgb(colors: NDArray[np.float64], alpha: Plane) -> NDArray[np.uint8]:
    """Before the plain ground."""
    over = np.clip(colors, 0.0, 1.0) * alpha[..., None] + np.asarray(GROUND) * (1.0 - alpha[..., None])
    return np.rint(255.0 * over).astype(np.uint8)


def bulged(x: Plane, y: Plane, radius: float) -> NDArray[np.float64]:
    """Normals of a ball of this radius at the origin."""
    z = np.sqrt(np.maximum(radius**2 - x**2 - y**2, 1e-4))
    normals = np.dstack((x, y, z))
    unit: NDArray[np.float64] = normals / np.linalg.norm(normals, axis=2, keepdims=True)
    return unit


def mug() -> NDArray[np.uint8]:
    """A glazed mug with a printed band and a handle that one sees through."""
    x, y = grid()
    body = np.maximum(
        polygon((-0.62, 0.6), (0.38, 0.6), (0.34, -0.62), (-0.58, -0.62)), ellipse(-0.12, -0.62, 0.46, 0.1)
    )
    body = np.maximum(body, ellipse(-0.12, 0.6, 0.5, 0.14))
    handle = np.clip(ellipse(0.4, 0.02, 0.4, 0.42) - ellipse(0.38, 0.02, 0.24, 0.27), 0.0, 1.0)
    across = np.clip((x + 0.12) / 0.5, -1.0, 1.0)
    normals = np.dstack((across, np.zeros_like(x), np.sqrt(1.0 - 0.98 * across**2)))
    bright = lit(normals / np.linalg.norm(normals, axis=2, keepdims=True), shine=0.6)
    angle = np.arcsin(across)
    print_ = (np.abs(y) < 0.34) & (np.sin(9.0 * angle) * np.sin(22.0 * y + 3.0 * np.cos(6.0 * angle)) > 0.1)
    colors = mixed((0.85, 0.82, 0.74), (0.1, 0.25, 0.45), print_.astype(np.float64)) * bright[..., None]
    inside = ellipse(-0.12, 0.6, 0.45, 0.11)[..., None]
    colors = colors * (1.0 - inside) + inside * np.array((0.22, 0.12, 0.07)) * (1.0 + 0.8 * x[..., None])
    at_handle = (handle * (1.0 - body))[..., None]
    colors = colors * (1.0 - at_handle) + at_handle * mixed(
        (0.5, 0.48, 0.42), (0.9, 0.87, 0.8), 0.5 + 0.5 * y
    )
    return rgba(colors, np.maximum(body, handle))


def fern() -> NDArray[np.uint8]:
    """Barnsley's fern: leaves down to a pixel, and holes everywhere."""
    maps = np.array(
        (
            (0.0, 0.0, 0.0, 0.16, 0.0, 0.0),
            (0.85, 0.04, -0.04, 0.85, 0.0, 1.6),
            (0.2, -0.26, 0.23, 0.22, 0.0, 1.6),
            (-0.15, 0.28, 0.26, 0.24, 0.0, 0.44),
        )
    )
    dice = np.random.default_rng(7)
    places = np.zeros((20_000, 2))
    counts, greens = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for step in range(160):
        which = np.searchsorted((0.01, 0.86, 0.93), dice.random(len(places)))
        a, b, c, d, e, f = maps[which].T
        px, py = places.T
        places = np.stack((a * px + b * py + e, c * px + d * py + f), axis=1)
        if step > 20:
            columns = ((places[:, 0] / 5.4 + 0.46) * SIDE).astype(np.int64)
            rows = ((0.97 - places[:, 1] / 10.6) * SIDE).astype(np.int64)
            np.add.at(counts, (rows, columns), 1.0)
            np.add.at(greens, (rows, columns), which == 2)
    alpha = np.clip(counts / 4.0, 0.0, 1.0)
    share = greens / np.maximum(counts, 1.0)
    colors = mixed((0.1, 0.36, 0.12), (0.5, 0.62, 0.16), np.clip(share + 0.5 * noise(3, 12, 3), 0.0, 1.0))
    return rgba(colors * (0.7 + 0.5 * noise(4, 48, 3)[..., None]), alpha)


def lettering() -> NDArray[np.uint8]:
    """A word sawn out of a board: sharp strokes with year rings."""
    x, y = grid()

    def strokes(pen: ImageDraw.ImageDraw, unit: float) -> None:
        for number, letter in enumerate("TEMPA"):
            left = -0.9 + number * 0.38
            for line in LETTERS[letter]:
                points = [((1 + left + 0.28 * u) * unit, (1 - 0.32 + 0.64 * v) * unit) for u, v in line]
                pen.line(points, 255, round(0.09 * unit), joint="curve")
                for px, py in points:
                    reach = 0.045 * unit
                    pen.ellipse((px - reach, py - reach, px + reach, py + reach), 255)

    rings = 0.5 + 0.5 * np.sin(90.0 * np.hypot(0.25 * x + 0.3, y + 1.4 + 0.1 * noise(11, 4, 4)))
    grain = 0.85 + 0.3 * noise(12, 96, 2)
    colors = mixed((0.45, 0.24, 0.1), (0.83, 0.6, 0.34), rings) * grain[..., None]
    return rgba(colors, drawn(strokes))


def cat() -> NDArray[np.uint8]:
    """A sitting cat with stripes, ragged fur and whiskers."""
    x, y = grid()
    parts = (
        ellipse(0.0, -0.35, 0.42, 0.5),
        ellipse(0.0, 0.38, 0.34, 0.3),
        polygon((-0.33, 0.42), (-0.3, 0.86), (-0.06, 0.62)),
        polygon((0.33, 0.42), (0.3, 0.86), (0.06, 0.62)),
        np.clip(ellipse(0.5, -0.5, 0.36, 0.3) - ellipse(0.46, -0.38, 0.26, 0.26), 0.0, 1.0),
        ellipse(-0.18, -0.78, 0.16, 0.1),
        ellipse(0.18, -0.78, 0.16, 0.1),
    )
    shape = np.max(parts, axis=0)
    blurred = np.asarray(
        Image.fromarray(shape.astype(np.float32)).reduce(8).resize((SIDE, SIDE), Image.Resampling.BICUBIC),
        np.float64,
    )
    fur = noise(21, 96, 3, 0.8)
    alpha = np.clip((blurred + 0.55 * (fur - 0.5) - 0.42) * 7.0, 0.0, 1.0)
    stripes = np.sin(26.0 * y + 4.0 * np.abs(x) * 6.0 + 6.0 * noise(22, 6, 3))
    colors = mixed((0.27, 0.17, 0.1), (0.82, 0.55, 0.3), np.clip(0.5 + 0.8 * stripes, 0.0, 1.0))
    colors *= (0.55 + 0.8 * noise(23, 128, 2, 0.9))[..., None] * lit(bulged(0.8 * x, 0.5 * y, 1.0))[..., None]
    for side in (-1.0, 1.0):
        eye, pupil = (
            ellipse(0.14 * side, 0.43, 0.075, 0.06)[..., None],
            ellipse(0.14 * side, 0.43, 0.02, 0.055)[..., None],
        )
        colors = colors * (1.0 - eye) + eye * np.array((0.6, 0.8, 0.25))
        colors = colors * (1.0 - pupil)
    nose = polygon((-0.05, 0.3), (0.05, 0.3), (0.0, 0.24))[..., None]
    colors = colors * (1.0 - nose) + nose * np.array((0.75, 0.4, 0.4))
    whiskers = drawn(_whiskers)
    alpha = np.maximum(alpha, whiskers)
    colors = colors * (1.0 - whiskers[..., None]) + 0.85 * whiskers[..., None]
    return rgba(colors, alpha)


def _whiskers(pen: ImageDraw.ImageDraw, unit: float) -> None:
    for side in (-1.0, 1.0):
        for rise in (-0.08, 0.0, 0.08):
            start, end = (0.1 * side, 0.26), (0.56 * side, 0.26 + rise)
            points = [((1 + px) * unit, (1 - py) * unit) for px, py in (start, end)]
            pen.line(points, 255, round(0.009 * unit))


def crate() -> NDArray[np.uint8]:
    """A crate seen from a corner: three faces of planks in perspective, and nails."""
    faces = (
        (((-0.72, 0.3), (-0.02, 0.08), (-0.02, -0.78), (-0.62, -0.42)), 0.95),
        (((-0.02, 0.08), (0.7, 0.34), (0.6, -0.4), (-0.02, -0.78)), 0.62),
        (((-0.72, 0.3), (0.02, 0.6), (0.7, 0.34), (-0.02, 0.08)), 1.15),
    )
    colors, alpha = np.zeros((SIDE, SIDE, 3)), np.zeros((SIDE, SIDE))
    for number, (corners, bright) in enumerate(faces):
        cover = polygon(*corners)
        u, v = _unmapped(corners)
        edge = np.minimum.reduce((u, 1.0 - u, v, 1.0 - v))
        planks = np.abs((5.0 * v) % 1.0 - 0.5) > 0.47
        grain = 0.5 + 0.5 * np.sin(60.0 * v + 10.0 * noise(31 + number, 5, 4) + 4.0 * u)
        wood = mixed((0.5, 0.33, 0.17), (0.78, 0.58, 0.34), grain) * np.where(edge < 0.1, 0.8, 1.0)[..., None]
        wood[planks & (edge >= 0.1)] *= 0.35
        nails = ((((u - 0.05) % 0.9) - 0.0) ** 2 + (((5.0 * v) % 1.0 - 0.5) / 5.0) ** 2) < 0.0004
        wood[nails] = 0.2
        colors = np.where((cover > alpha)[..., None], wood * bright, colors)
        alpha = np.maximum(alpha, cover)
    return rgba(
        colors * (0.9 + 0.2 * noise(35, 128, 1)[..., None]),
        np.where(alpha > 0.45, np.maximum(alpha, 0.0), alpha),
    )


def _unmapped(corners: Sequence[tuple[float, float]]) -> tuple[Plane, Plane]:
    """Where each pixel lies on the face whose corners these are, 0 to 1: the inverse of its homography."""
    square = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    rows, right = [], []
    for (px, py), (u, v) in zip(corners, square, strict=True):
        rows += [(px, py, 1, 0, 0, 0, -u * px, -u * py), (0, 0, 0, px, py, 1, -v * px, -v * py)]
        right += [u, v]
    h = np.append(np.linalg.solve(np.array(rows, np.float64), np.array(right)), 1.0)
    x, y = grid()
    below = h[6] * x + h[7] * y + h[8]
    return (h[0] * x + h[1] * y + h[2]) / below, (h[3] * x + h[4] * y + h[5]) / below


def smoke() -> NDArray[np.uint8]:
    """A puff whose edge is nowhere: half of it is half transparent."""
    x, y = grid()
    swirl = noise(41, 4, 5, 0.6)
    reach = np.hypot(x, 1.15 * y) + 0.7 * (swirl - 0.5)
    alpha = np.clip((0.72 - reach) / 0.3, 0.0, 1.0) ** 1.5
    colors = mixed(
        (0.35, 0.34, 0.4), (0.92, 0.88, 0.82), np.clip(0.2 + 0.9 * noise(42, 5, 4) + 0.3 * y, 0.0, 1.0)
    )
    return rgba(colors, alpha)


def planet() -> NDArray[np.uint8]:
    """A ball with continents and craters, as noisy as a photograph; no alpha."""
    x, y = grid()
    alpha = ellipse(0.0, 0.0, 0.8, 0.8)
    normals = bulged(x, y, 0.8)
    height = noise(51, 5, 6, 0.6)
    land = np.clip((height - 0.5) * 14.0 + 0.5, 0.0, 1.0)
    colors = mixed((0.12, 0.22, 0.42), (0.55, 0.45, 0.26), land) * (0.7 + 0.6 * noise(52, 24, 4))[..., None]
    clouds = np.clip((noise(53, 4, 6, 0.65) - 0.55) * 6.0, 0.0, 0.9)[..., None]
    colors = colors * (1.0 - clouds) + 0.95 * clouds
    grain = np.random.default_rng(54).normal(0.0, 0.02, (SIDE, SIDE, 1))
    return rgb(colors * lit(normals)[..., None] + grain, alpha)


def pear() -> NDArray[np.uint8]:
    """A pear with a stalk, speckles and a bright spot; no alpha."""
    x, y = grid()
    waist = 0.56 - 0.3 / (1.0 + np.exp(-9.0 * (y - 0.12)))
    low, high = -0.8, 0.68
    middle = np.clip((y - low) / (high - low), 1e-3, 1.0 - 1e-3)
    half = waist * (4.0 * middle * (1.0 - middle)) ** 0.45
    alpha = np.clip((half - np.abs(x - 0.05 * np.sin(3.0 * y))) * SIDE / 2.0 + 0.5, 0.0, 1.0) * (
        (y > low) & (y < high)
    )
    across = np.clip((x - 0.05 * np.sin(3.0 * y)) / np.maximum(half, 1e-3), -1.0, 1.0)
    normals = np.dstack((across, 0.7 * (y + 0.2), np.sqrt(np.maximum(1.0 - across**2, 0.02))))
    bright = lit(normals / np.linalg.norm(normals, axis=2, keepdims=True), shine=0.5)
    speckles = np.clip((noise(61, 128, 2, 0.9) - 0.66) * 8.0, 0.0, 1.0)
    colors = mixed(
        (0.62, 0.66, 0.16),
        (0.8, 0.34, 0.14),
        np.clip(0.5 + 0.9 * x + 0.5 * (noise(62, 6, 3) - 0.5), 0.0, 1.0),
    )
    colors = colors * (1.0 - 0.5 * speckles[..., None]) * bright[..., None]
    stalk = polygon((-0.02, 0.6), (0.04, 0.6), (0.14, 0.92), (0.08, 0.94))
    shown = np.maximum(alpha, stalk)
    brown = (stalk * (1.0 - alpha))[..., None]
    return rgb(colors * (1.0 - brown) + brown * np.array((0.3, 0.2, 0.1)), shown)


PICTURES: Mapping[str, Callable[[], NDArray[np.uint8]]] = {
    picture.__name__: picture for picture in (mug, fern, lettering, cat, crate, smoke, planet, pear)
}


def save(name: str, folder: Path) -> Path:
    """Write a picture as a PNG."""
    path = folder / f"{name}.png"
    Image.fromarray(PICTURES[name]()).save(path)
    return path


if __name__ == "__main__":
    for each in PICTURES:
        print(save(each, Path(sys.argv[1])))
