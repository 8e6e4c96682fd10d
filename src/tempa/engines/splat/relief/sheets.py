"""The sheets of the relief as Gaussians: its front, and the mirrored back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import Gaussians, of_colors
from tempa.engines.splat.relief.cells import Pyramid
from tempa.engines.splat.relief.discs import SPREAD, STRETCH_MAX, THIN, footprint, quaternions
from tempa.engines.splat.relief.surface import gradients

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tempa.engines.splat.relief.cells import Cells
    from tempa.engines.splat.relief.surface import Sheet, Surface

OVERLAP = 2.0 * np.pi * SPREAD**2  # how often a lattice of such Gaussians covers each place, in the mean
OPACITY_MAX = 0.98
BEHIND = 0.25  # of a cell: how much a larger cell lies behind the smallest, so that detail is not covered


def layer(surface: Surface, sheet: Sheet) -> Pyramid:
    """What `sheet_gaussians` needs of a sheet, by cell: its height, its nearness, and the slopes of both."""
    across, up = gradients(sheet.heights, surface.solid)
    drift_across, drift_up = gradients(sheet.nearness, surface.solid)
    # A rim may be too steep for a disc to follow; there the wall takes over.
    hold = STRETCH_MAX / np.maximum(np.hypot(across, up), STRETCH_MAX)
    slopes = [values * hold for values in (across, up, drift_across, drift_up)]
    # A cell on the outline has its height from the part that is the subject.
    weights = np.where(surface.solid, 1.0, 1e-9)
    return Pyramid(np.stack((sheet.heights, sheet.nearness, *slopes), axis=2), weights)


def sheet_gaussians(
    cells: Cells,
    side: int,
    sheet: Pyramid,
    colors: NDArray[np.float64],
    opacities: NDArray[np.float64],
    *,
    facing: float,
) -> Gaussians:
    """One Gaussian a cell of a grid of this side, in the tangent plane. `facing`: 1 front, -1 back."""
    cell = 1.0 / side
    x, y = cells.columns * cell - 0.5, 0.5 - cells.rows * cell
    z, nearness, across, up, drift_across, drift_up = cells.mean(sheet).T
    tangent_across = np.stack((nearness + x * drift_across, y * drift_across, across), axis=1)
    tangent_up = np.stack((x * drift_up, nearness + y * drift_up, up), axis=1)
    axes, lengths = footprint(tangent_across, tangent_up)
    along = SPREAD * cell * cells.sizes[:, None] * lengths
    scales = np.column_stack((along, THIN * cell * np.sqrt(cells.sizes)))
    z = z - facing * BEHIND * cell * (cells.sizes - 1.0)
    positions = np.stack((x * nearness, y * nearness, z), axis=1)
    return of_colors(positions, scales, quaternions(axes), opacities, colors)


def opacity_of(alpha: NDArray[np.float64], layers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The opacity of each Gaussian of a lattice, `layers` of which over one another cover `alpha`.

    Coverage multiplies what is left over: 1 - alpha = (1 - opacity)^(overlap * layers), about.
    """
    left = np.clip(1.0 - alpha, 1e-9, 1.0)
    return np.minimum(1.0 - left ** (1.0 / (OVERLAP * layers)), OPACITY_MAX)
