"""How the engine `relief-splat` runs: a `Runner`. A picture becomes a relief, and its back a mirror image.

Classical: the form is inflated from the silhouette (or taken from a depth image), the colours are
fitted to the picture. No weights, no dice: the same file and parameters give the same bytes. The report
says what it is: `"method": "relief"`, `"unseen_surface": "mirrored"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat import gate, outputs
from tempa.engines.splat.image import intake
from tempa.engines.splat.preview import NEAR_FRONT
from tempa.engines.splat.raster import render
from tempa.engines.splat.relief import depth
from tempa.engines.splat.relief.model import Options, relief
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.image.picture import Picture
    from tempa.jobs.ports import Progress

IMAGE, DEPTH = "inputs/image", "inputs/depth"
_REHEARSED = 1024  # Gaussians


def load() -> None:
    """Ready the decoders, and compile every kernel: in one thread, as a zygote must."""
    intake.prepare()
    render.compile()
    relief(_disc(), Options(num_gaussians=_REHEARSED), threads=1)


def rehearse() -> None:
    """Model a disc; nothing is written, nothing kept."""
    relief(_disc(), Options(num_gaussians=_REHEARSED))


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Read the picture, model it, fit it, let it pass the gate, and write the files.

    Raises:
        TempaError: a code of the picture's reading, NO_FOREGROUND, a code of the gate, or EXPORT_FAILED.
    """
    parameters = work["parameters"]
    progress("reading", 0.0)
    said = intake.given(work)
    picture = intake.read(folder / IMAGE, parameters, **said)
    depths = (
        depth.read(folder / DEPTH, picture, bounds=said.get("bounds"))
        if work.get("depth") is not None
        else None
    )
    options = Options.of(parameters)
    made = relief(picture.rgba, options, depths, stage=progress)
    progress("checking", 0.6)
    measured = gate.accept(made.gaussians, asked=options.num_gaussians)
    measured |= {**_told(picture, depths), **made.measured}
    files = outputs.publish(made.gaussians, work, folder, progress, view=NEAR_FRONT, since=0.65)
    return Report(files=files, measurements=measured)


def _told(picture: Picture, depths: NDArray[np.float64] | None) -> dict[str, Any]:
    return {
        "method": "relief",
        "unseen_surface": "mirrored",
        "depth": "inflated" if depths is None else "given",
        "mask": picture.mask,
    }


def _disc() -> NDArray[np.uint8]:
    line = np.arange(64) - 31.5
    inside = np.hypot(line[:, None], line[None, :]) < 28.0
    return np.dstack([np.where(inside, 200, 0)] * 3 + [np.where(inside, 255, 0)]).astype(np.uint8)
