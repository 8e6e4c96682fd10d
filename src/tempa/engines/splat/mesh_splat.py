"""How the engine `mesh-splat` runs: a `Runner`. A mesh becomes Gaussians that lie on it.

Nothing is learnt or fitted: its colours are the file's, its form is the mesh's. The same file and
parameters give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat import gate, outputs
from tempa.engines.splat.mesh import reading, surface
from tempa.engines.splat.mesh.discs import covered
from tempa.engines.splat.raster import render
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.engines.splat.mesh.surface import Surface
    from tempa.jobs.ports import Progress

INPUT = "inputs/mesh"
_TRIANGLE = np.array([[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]])
_SMALL = 1e-30  # units: the squares of what is smaller are no numbers any more
_THIN = 1e-12  # of the longest side squared: area that rounding alone may have made


def load() -> None:
    """Ready the rasteriser."""
    render.compile()


def rehearse() -> None:
    """Cover one triangle; nothing is written, nothing kept."""
    covered(surface.part(_TRIANGLE, surface.Paint()), 64, seed=0, color=(0.5, 0.5, 0.5), shading="auto")


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Read the mesh, cover it with discs, let them pass the gate, and write the files.

    Raises:
        TempaError: IMPORT_FAILED, EMPTY_RESULT, a code of the gate, or EXPORT_FAILED.
    """
    parameters = work["parameters"]
    progress("reading", 0.0)
    found, kind = reading.read(folder / INPUT)
    up_axis = reading.UP_AXES[kind] if parameters["up_axis"] == "auto" else parameters["up_axis"]
    fitted, scale, offset = surface.fitted(surface.outward(_with_area(surface.upright(found, up_axis))))
    progress("sampling", 0.2)
    gaussians = covered(
        fitted,
        parameters["num_gaussians"],
        seed=parameters["seed"],
        color=parameters["color"],
        shading=parameters["shading"],
    )
    progress("checking", 0.4)
    if not len(gaussians):
        raise TempaError("EMPTY_RESULT", "The mesh is transparent all over.")
    measured = gate.accept(gaussians) | {
        "method": "mesh",
        "mesh": {"format": kind, "triangles": len(found), "up_axis": up_axis},
        "normalization": {"scale": scale, "offset": offset.tolist()},
    }
    files = outputs.publish(gaussians, work, folder, progress, since=0.5)
    return Report(files=files, measurements=measured)


def _with_area(found: Surface) -> Surface:
    """Without the triangles that have none.

    Raises:
        TempaError: EMPTY_RESULT; none has.
    """
    size = float(np.ptp(found.corners.reshape(-1, 3), axis=0).max()) if len(found) else 0.0
    areas = np.linalg.norm(found.crosses, axis=1)
    solid = found.take((areas > _THIN * size * size) & (size >= _SMALL))
    if not len(solid):
        detail = {"triangles": len(found), "with_area": 0}
        hint = "If this is a file of Gaussians, POST /v1/convert reads it."
        raise TempaError("EMPTY_RESULT", "The mesh has no surface.", hint=hint, detail=detail)
    return solid
