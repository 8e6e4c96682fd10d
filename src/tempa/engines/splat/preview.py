"""Pictures of a result: a still that is worth looking at, and a turntable.

The turntable is an animated WebP. All browsers show it, and the image viewers that people have; an
APNG of the same 24 frames is 12 times as large, for edges nobody sees in motion, and an MP4 would need an
encoder. Both pictures are the same bytes in every run.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image as PillowImage

from tempa.engines.splat.raster.camera import DEFAULT_FIELD_OF_VIEW, Camera, orbit
from tempa.engines.splat.raster.render import render
from tempa.engines.splat.raster.threads import count_threads
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians

STILL = MadeFile(name="preview.png", role="rendered_preview", file_format="png", media_type="image/png")
TURNTABLE = MadeFile(name="turntable.webp", role="turntable", file_format="webp", media_type="image/webp")
FRAME_MILLISECONDS = 100
_QUALITY = 85
_MARGIN = 1.12
_FLOATERS = 0.002  # share of the Gaussians on each side that a frame may leave out: strays shrink no picture
_SAMPLE = 20_000  # Gaussians looked at for the frame: more move it by less than a pixel
_MIDDLE, _CORNER = (0.965, 0.962, 0.955), (0.80, 0.805, 0.815)  # of the background, sRGB


@dataclass(frozen=True, slots=True)
class View:
    """The side from which a still is taken, as an orbit has it."""

    yaw_degrees: float
    pitch_degrees: float


THREE_QUARTER = View(35.0, 22.0)  # for what is modelled all around
NEAR_FRONT = View(14.0, 7.0)  # for what was seen from the front only


def still(gaussians: Gaussians, view: View, *, width: int, height: int) -> NDArray[np.uint8]:
    """A picture (height, width, 3) from one side, framed on the cloud, over a soft background."""
    camera = framed(gaussians, [view], width=width, height=height)[0]
    return _taken(gaussians, camera, _background(width, height), None)


def turntable(
    gaussians: Gaussians, view: View, frames: int, *, width: int, height: int
) -> Sequence[NDArray[np.uint8]]:
    """One turn in as many pictures, beginning with the view. The camera keeps its height and distance."""
    turns = [View(view.yaw_degrees + 360.0 * k / frames, view.pitch_degrees) for k in range(frames)]
    cameras = framed(gaussians, turns, width=width, height=height)
    background = _background(width, height)
    # A frame for each thread is faster than threads for each frame: sorting has a core of its own.
    with ThreadPoolExecutor(min(count_threads(), frames)) as pool:
        return list(pool.map(lambda camera: _taken(gaussians, camera, background, 1), cameras))


def write_still(gaussians: Gaussians, view: View, folder: Path, *, width: int, height: int) -> MadeFile:
    """Write `preview.png`.

    Raises:
        OSError: the disk is full or broken.
    """
    picture = PillowImage.fromarray(still(gaussians, view, width=width, height=height))
    _save(folder / STILL.name, lambda file: picture.save(file, "PNG", compress_level=6))
    return STILL


def write_turntable(
    gaussians: Gaussians, view: View, frames: int, folder: Path, *, width: int, height: int
) -> MadeFile:
    """Write `turntable.webp`, which turns for ever.

    Raises:
        OSError: the disk is full or broken.
    """
    pictures = [
        PillowImage.fromarray(picture)
        for picture in turntable(gaussians, view, frames, width=width, height=height)
    ]
    options: dict[str, Any] = {
        "save_all": True,
        "append_images": pictures[1:],
        "duration": FRAME_MILLISECONDS,
        "loop": 0,
        "quality": _QUALITY,
        "method": 1,  # 0.4 s for 24 frames, of 1.3 s with method 3; a fifth more bytes
    }
    _save(folder / TURNTABLE.name, lambda file: pictures[0].save(file, "WEBP", **options))
    return TURNTABLE


def _save(path: Path, write: Callable[[Any], None]) -> None:
    """Pillow is handed an open file: given a path it deletes what it could not finish, the reason with it."""
    with path.open("wb") as file:
        write(file)


def framed(gaussians: Gaussians, views: Sequence[View], *, width: int, height: int) -> list[Camera]:
    """A camera for each view, all as far from one point, so that the cloud fits into every picture."""
    points, sizes = _looked_at(gaussians)
    target = _middle(points)
    slope_up = math.tan(math.radians(DEFAULT_FIELD_OF_VIEW) / 2.0)
    slopes = (slope_up * width / height, slope_up)
    if len(views) == 1:
        target = _centred(points, target, views[0])
    distance = max(_distance(points - target, sizes, view, slopes) for view in views)
    return [
        orbit(
            view.yaw_degrees,
            view.pitch_degrees,
            distance,
            width=width,
            height=height,
            target=(target[0], target[1], target[2]),
        )
        for view in views
    ]


def _looked_at(gaussians: Gaussians) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres, and how far around them there is something; of a sample of those that can be seen."""
    seen = np.flatnonzero(gaussians.opacities > 0.1)
    if len(seen) == 0:
        seen = np.arange(len(gaussians))
    seen = seen[:: max(1, len(seen) // _SAMPLE)]
    sizes = 2.0 * gaussians.scales[seen].max(axis=1).astype(np.float64)
    return gaussians.positions[seen].astype(np.float64), sizes


def _middle(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the extent, along each axis."""
    low, high = np.quantile(values, (_FLOATERS, 1.0 - _FLOATERS), axis=0)
    middle: NDArray[np.float64] = (low + high) / 2.0
    return middle


def _centred(points: NDArray[np.float64], target: NDArray[np.float64], view: View) -> NDArray[np.float64]:
    """The target moved sideways, so that what is seen lies in the middle of the picture."""
    axes = orbit(view.yaw_degrees, view.pitch_degrees, 1.0).rotation
    offset = _middle((points - target) @ axes.T)
    moved: NDArray[np.float64] = target + offset[0] * axes[0] + offset[1] * axes[1]
    return moved


def _distance(
    points: NDArray[np.float64], sizes: NDArray[np.float64], view: View, slopes: tuple[float, float]
) -> float:
    """From where all points (about the target) and what is around them lie between the picture's edges."""
    own = points @ orbit(view.yaw_degrees, view.pitch_degrees, 1.0).rotation.T
    needed = [
        np.quantile(_MARGIN * (np.abs(own[:, axis]) + sizes) / slopes[axis] + own[:, 2], 1.0 - _FLOATERS)
        for axis in (0, 1)
    ]
    return max(float(max(needed)), 1e-3)


def _taken(
    gaussians: Gaussians, camera: Camera, background: NDArray[np.float32], threads: int | None
) -> NDArray[np.uint8]:
    image = render(gaussians, camera, threads=threads)
    shown = image.rgb + (np.float32(1.0) - image.alpha)[..., None] * background
    return (np.clip(shown, 0.0, 1.0) * np.float32(255.0) + np.float32(0.5)).astype(np.uint8)


def _background(width: int, height: int) -> NDArray[np.float32]:
    """Light in the middle, a little darker towards the corners."""
    rows, columns = np.mgrid[0:height, 0:width]
    across, down = (columns + 0.5) / width - 0.5, (rows + 0.5) / height - 0.5
    share = np.minimum(2.0 * (across * across + down * down), 1.0)[..., None]
    colors: NDArray[np.float64] = (1.0 - share) * np.array(_MIDDLE) + share * np.array(_CORNER)
    return colors.astype(np.float32)
