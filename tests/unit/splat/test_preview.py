"""Previews: framed on what is there, over a background, the same bytes every time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tempa.engines.splat import preview
from tempa.engines.splat.gaussians import Gaussians, joined
from tempa.engines.splat.preview import NEAR_FRONT, THREE_QUARTER
from tests.unit.splat.raster.clouds import dots

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

RED = (1.0, 0.0, 0.0)


def block(offset: tuple[float, float, float] = (0.0, 0.0, 0.0), size: float = 1.0) -> Gaussians:
    """A red box of 11 x 11 x 11 dots."""
    steps = np.linspace(-0.5, 0.5, 11) * size
    places = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3) + np.array(offset)
    return dots([(x, y, z) for x, y, z in places], [RED] * len(places), scale=0.05 * size)


def edges(picture: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Left, right, top and bottom margins of what is red, in pixels."""
    red = (picture[..., 0].astype(int) - picture[..., 1]) > 100
    rows, columns = np.flatnonzero(red.any(axis=1)), np.flatnonzero(red.any(axis=0))
    height, width = red.shape
    return columns[0], width - 1 - columns[-1], rows[0], height - 1 - rows[-1]


@pytest.mark.parametrize("view", [THREE_QUARTER, NEAR_FRONT])
@pytest.mark.parametrize(("offset", "size"), [((0, 0, 0), 1.0), ((3, -2, 5), 0.1), ((0, 0, 0), 40.0)])
@pytest.mark.parametrize(("width", "height"), [(120, 120), (160, 90), (90, 160)])
def test_a_still_is_framed_on_the_cloud(
    view: preview.View, offset: tuple[float, float, float], size: float, width: int, height: int
) -> None:
    margins = edges(preview.still(block(offset, size), view, width=width, height=height))

    assert min(margins) > 0, "it runs over the edge"
    assert min(margins) < 0.2 * min(width, height), "it is lost in the picture"


def test_a_stray_shrinks_no_picture() -> None:
    stray = dots([(100.0, 0.0, 0.0)], [RED], scale=0.05)
    alone = preview.still(block(), THREE_QUARTER, width=96, height=96)

    with_stray = preview.still(joined([block(), stray]), THREE_QUARTER, width=96, height=96)

    assert abs(np.subtract(edges(alone), edges(with_stray))).max() <= 1


def test_the_three_quarter_view_shows_right_and_top() -> None:
    """Dots at the ends of the axes: what is on the viewer's side is nearer to the lower left."""
    ends = dots([(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)], [(1, 0, 0), (0, 1, 0), (0, 0, 1)], scale=0.05)
    picture = preview.still(ends, THREE_QUARTER, width=100, height=100).astype(int)
    places = []
    for channel in range(3):
        others = [k for k in range(3) if k != channel]
        rows, columns = np.nonzero(picture[..., channel] - picture[..., others].max(axis=2) > 100)
        places.append((columns.mean(), rows.mean()))

    red, green, blue = places
    assert red[0] > green[0] > blue[0]
    assert green[1] < min(red[1], blue[1])


def test_a_cloud_that_cannot_be_seen_gives_the_background() -> None:
    faint = dots([(0, 0, 0), (0.1, 0, 0)], [RED] * 2, opacity=0.001)

    picture = preview.still(faint, THREE_QUARTER, width=20, height=20)

    assert picture.min() > 200


def test_a_still_is_a_png_of_the_size_asked_for(tmp_path: Path) -> None:
    made = preview.write_still(block(), THREE_QUARTER, tmp_path, width=50, height=30)

    assert (made.name, made.role, made.media_type) == ("preview.png", "rendered_preview", "image/png")
    with Image.open(tmp_path / made.name) as image:
        assert (image.format, image.size, image.mode) == ("PNG", (50, 30), "RGB")


def test_a_turntable_turns_once_and_for_ever(tmp_path: Path) -> None:
    cloud = dots([(0.5, 0, 0), (-0.5, 0, 0)], [(1, 0, 0), (0, 0, 1)], scale=0.1)

    made = preview.write_turntable(cloud, preview.View(0, 0), 4, tmp_path, width=64, height=48)

    red_at = []
    with Image.open(tmp_path / made.name) as image:
        assert (image.format, getattr(image, "n_frames", 1), image.info["loop"]) == ("WEBP", 4, 0)
        for frame in range(4):
            image.seek(frame)
            pixels = np.asarray(image.convert("RGB")).astype(int)
            red = pixels[..., 0] - pixels[..., 2] > 80
            red_at.append(float(np.nonzero(red)[1].mean()) - 31.5 if red.any() else math.nan)
    assert red_at[0] > 10
    assert abs(red_at[1]) < 2  # the camera stands on +x: red in front
    assert red_at[2] < -10
    assert math.isnan(red_at[3])  # behind blue


def test_pictures_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        preview.write_still(block(), THREE_QUARTER, folder, width=64, height=64)
        preview.write_turntable(block(), THREE_QUARTER, 3, folder, width=64, height=64)
        files.append([path.read_bytes() for path in sorted(folder.iterdir())])

    assert files[0] == files[1]
