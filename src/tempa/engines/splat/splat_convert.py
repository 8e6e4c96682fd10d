"""How the engine `splat-convert` runs: a `Runner`. A file of Gaussians is read, edited, and written anew."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat import gate, outputs
from tempa.engines.splat.edit import keep
from tempa.engines.splat.edit.decimate import decimate
from tempa.engines.splat.formats import files, order
from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.source import malformed, mapped
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.raster import render
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.jobs.ports import Progress

INPUT = "inputs/file"
_FINITE = "finite"


def load() -> None:
    """Ready the rasteriser, and what is imported late: the second reader."""
    import gaussforge

    gaussforge.GaussForge()
    render.compile()


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Read the file, do what the parameters ask for, and write it in every format asked for.

    Raises:
        TempaError: IMPORT_FAILED; DEGENERATE_OUTPUT, nothing is left; EXPORT_FAILED.
    """
    progress("reading", 0.0)
    path = folder / INPUT
    data = mapped(path)
    name = files.recognized(data)
    if name is None:
        raise _unknown(data[:8].tobytes())
    gaussians = _upright(files.read(path, name), name, work["parameters"].get("source_axes"))
    measured = {
        "source": {
            "sha256": hashlib.sha256(data.data).hexdigest(),
            "file_size_bytes": len(data),
            "file_format": name,
            "gaussians": len(gaussians),
            "sh_degree": gaussians.degree,
        }
    }
    progress("editing", 0.3)
    edited, steps = edit(gaussians, work["parameters"])
    measured |= {"steps": steps} | _measured(edited)
    made = outputs.publish(edited, work, folder, progress, since=0.5)
    return Report(files=made, measurements=measured)


def _unknown(begins_with: bytes) -> TempaError:
    error = malformed("it is not of a format that is read", begins_with=begins_with.hex())
    files_read = ", ".join(sorted({form.file_name.removeprefix("model") for form in FORMATS.values()}))
    hint = f"Send Gaussians in one of {files_read}; the engine mesh-splat makes them of a mesh."
    return TempaError(error.code, error.message, hint=hint, detail=error.detail)


def _upright(gaussians: Gaussians, name: str, axes: str | None) -> Gaussians:
    """From other axes than the format's own, if the file was written so: many an .spz is."""
    return gaussians if axes in {None, FORMATS[name].axes} else turned(gaussians)


def edit(gaussians: Gaussians, parameters: Mapping[str, Any]) -> tuple[Gaussians, list[dict[str, Any]]]:
    """The Gaussians after each step that was asked for, and how many each of them left.

    Raises:
        TempaError: DEGENERATE_OUTPUT, a step left nothing.
    """
    steps = list[dict[str, Any]]()
    for step, after in _edited(gaussians, parameters):
        steps.append({"step": step, "gaussians": len(after), "removed": len(gaussians) - len(after)})
        if not len(after):
            raise TempaError(
                "DEGENERATE_OUTPUT",
                f"No Gaussian is left after the step {step!r}.",
                hint="Widen the bounds of the step that detail names.",
                detail={"steps": steps},
            )
        gaussians = after
    return gaussians, steps


def _edited(gaussians: Gaussians, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Gaussians]]:
    """In this order: what is left out costs no later step anything."""
    choice = parameters["filter"]
    yield _FINITE, (gaussians := keep.finite(gaussians))
    if choice["opacity_min"] > 0:
        yield "opacity", (gaussians := keep.opaque(gaussians, choice["opacity_min"]))
    if choice["scale_min"] is not None or choice["scale_max"] is not None:
        yield "scale", (gaussians := keep.sized(gaussians, choice["scale_min"], choice["scale_max"]))
    if (sphere := choice["sphere"]) is not None:
        yield "sphere", (gaussians := keep.in_sphere(gaussians, sphere["center"], sphere["radius"]))
    if (crop := parameters["crop"]) is not None:
        yield "crop", (gaussians := keep.in_box(gaussians, crop["min"], crop["max"]))
    if (degree := parameters["sh_degree"]) is not None:
        yield "sh_degree", (gaussians := keep.of_degree(gaussians, degree))
    if (count := parameters["num_gaussians"]) is not None:
        yield "num_gaussians", (gaussians := decimate(gaussians, count))
    if parameters["order"] == "morton":
        yield "order", gaussians.take(order.morton(gaussians.positions))


def _measured(gaussians: Gaussians) -> dict[str, Any]:
    found = gate.measured(gaussians)
    found["opacity"]["median"] = float(np.median(gaussians.opacities))
    return found
