"""From a picture with an alpha to the Gaussians of its relief."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from tempa.core.errors import TempaError
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.relief.cells import ALPHA_WEIGHT, SLOPE_WEIGHT, Pyramid, leaves, splits
from tempa.engines.splat.relief.fitting import fit
from tempa.engines.splat.relief.inflation import boxiness, half_thickness
from tempa.engines.splat.relief.plate import framed, plate, side_for
from tempa.engines.splat.relief.rim import rim
from tempa.engines.splat.relief.sheets import layer, opacity_of, sheet_gaussians
from tempa.engines.splat.relief.surface import (
    camera_distance,
    gradients,
    half_depth_max,
    middle_of,
    on_rays,
    surface,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.raster.camera import Camera
    from tempa.engines.splat.relief.plate import Frame, Plate
    from tempa.engines.splat.relief.surface import Surface
    from tempa.jobs.ports import Progress

RIM_SHARE, BACK_SHARE = 0.12, 0.18  # of the Gaussians; the front has the rest
FINEST = 1.25  # grid cells of the subject for each Gaussian of the front: what the quadtree can save
BACK_BLUR = 1.0 / 90.0  # of the grid's side: the back is a guess, and looks like one
FIT_SIDE_MAX = 512


@dataclass(frozen=True, slots=True)
class Options:
    """What a request can choose.

    - `num_gaussians`: the budget; the result has at most as many, and nine tenths at least.
    - `field_of_view`: degrees along the picture's longer side.
    - `thickness`: multiplies the inflated depth; 0 is a flat card.
    - `profile`: `rounded`, `flat`, or `auto` by the outline.
    - `depth_scale`: how deep a depth image's range is, in sides of the subject's square.
    """

    num_gaussians: int = 131_072
    field_of_view: float = 20.0
    thickness: float = 1.0
    profile: str = "auto"
    depth_scale: float = 0.5

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Options:
        """Those of a request's parameters; others there, as `seed`, change nothing."""
        return cls(**{each.name: parameters[each.name] for each in fields(cls) if each.name in parameters})


@dataclass(frozen=True, slots=True)
class Made:
    """A relief, and what is told of how it was made."""

    gaussians: Gaussians
    measured: Mapping[str, Any]


def relief(
    rgba: NDArray[np.uint8],
    options: Options,
    depth: NDArray[np.float64] | None = None,
    *,
    stage: Progress | None = None,
    threads: int | None = None,
) -> Made:
    """The relief of a picture (h, w, 4), uint8, straight alpha; with `depth` (h, w), nearer is greater.

    Raises:
        TempaError: NO_FOREGROUND.
    """
    tell = stage or _silent
    tell("modelling", 0.1)
    frame = framed(rgba[..., 3])
    front_share = 1.0 - RIM_SHARE - BACK_SHARE
    side = side_for(options.num_gaussians * front_share * FINEST, frame)
    grid = plate(rgba, frame, side)
    if not grid.solid.any():
        message = "The foreground is finer than what so few Gaussians can show."
        raise TempaError("NO_FOREGROUND", message, detail={"num_gaussians": options.num_gaussians})
    shape = _shape(grid, frame, options, None if depth is None else _depth_on(depth, frame, side))
    parts = _parts(grid, shape, options.num_gaussians)
    tell("fitting", 0.3)
    fit_side = min(2 * side, FIT_SIDE_MAX)
    target = grid if fit_side == side else plate(rgba, frame, fit_side)
    gaussians = fit(parts, camera(shape.distance, fit_side), target, threads=threads)
    return Made(gaussians, _measured(shape, parts))


def _silent(stage: str, fraction: float | None = None) -> None:
    """For who does not want to know."""


def _measured(shape: Surface, parts: Sequence[Gaussians]) -> dict[str, Any]:
    front, back, wall = map(len, parts)
    return {
        "boxiness": round(shape.boxy, 4),
        "thickness": round(float(shape.thickness[shape.solid].max()), 6),
        "layers": {"front": front, "back": back, "rim": wall},
    }


def camera(distance: float, side: int) -> Camera:
    """The one a picture was taken with, by the relief's reckoning: a square of side 1 fills its view."""
    degrees = 2.0 * math.degrees(math.atan(0.5 / distance))
    return orbit(0.0, 0.0, distance, width=side, height=side, field_of_view_degrees=degrees)


def _shape(grid: Plate, frame: Frame, options: Options, depth: NDArray[np.float64] | None) -> Surface:
    solid = grid.solid
    distance = camera_distance(options.field_of_view, frame.share)
    boxy = boxiness(solid, options.profile)
    half = np.minimum(half_thickness(solid, boxy) * options.thickness, half_depth_max(distance))
    thickness = on_rays(half, distance, boxy)
    middle = None if depth is None else middle_of(depth, thickness, solid, options.depth_scale)
    return surface(thickness, solid, distance, boxy, middle)


def _depth_on(depth: NDArray[np.float64], frame: Frame, side: int) -> NDArray[np.float64]:
    image = Image.fromarray(depth.astype(np.float32)).crop(frame.box)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR), np.float64)


def _parts(grid: Plate, shape: Surface, budget: int) -> list[Gaussians]:
    wall = rim(grid, shape, int(RIM_SHARE * budget))
    back = _back(grid, shape, int(BACK_SHARE * budget))
    front = _front(grid, shape, budget - len(wall) - len(back))
    return [front, back, wall]


def _slopes(shape: Surface, heights: NDArray[np.float64]) -> Pyramid:
    across, up = gradients(heights, shape.solid)
    steep = np.maximum(1.0, np.hypot(across, up))
    return Pyramid(np.stack((across / steep, up / steep), axis=2), shape.solid.astype(np.float64))


def _front(grid: Plate, shape: Surface, budget: int) -> Gaussians:
    alpha = grid.alpha.astype(np.float64)
    colors = Pyramid(grid.colors.astype(np.float64), alpha)
    cover = Pyramid(alpha[..., None], np.ones_like(alpha))
    order = splits(
        alpha, (1.0, colors), (ALPHA_WEIGHT, cover), (SLOPE_WEIGHT, _slopes(shape, shape.front.heights))
    )
    cells = leaves(order, budget)
    layers = 1.0 + cells.mean(Pyramid(shape.solid[..., None].astype(np.float64), np.ones_like(alpha)))[:, 0]
    opacities = opacity_of(cells.mean(cover)[:, 0], layers)
    return sheet_gaussians(
        cells, grid.side, layer(shape, shape.front), cells.mean(colors), opacities, facing=1.0
    )


def _back(grid: Plate, shape: Surface, budget: int) -> Gaussians:
    solid = shape.solid.astype(np.float64)
    blur = BACK_BLUR * grid.side
    colors = Pyramid(gaussian_filter(grid.colors.astype(np.float64), (blur, blur, 0.0), truncate=2.5), solid)
    cover = Pyramid(grid.alpha[..., None] * solid[..., None], np.ones_like(solid))
    order = splits(
        solid, (1.0, colors), (ALPHA_WEIGHT, cover), (SLOPE_WEIGHT, _slopes(shape, shape.back.heights))
    )
    cells = leaves(order, budget)
    opacities = opacity_of(cells.mean(cover)[:, 0], np.full(len(cells), 2.0))
    return sheet_gaussians(
        cells, grid.side, layer(shape, shape.back), cells.mean(colors), opacities, facing=-1.0
    )
