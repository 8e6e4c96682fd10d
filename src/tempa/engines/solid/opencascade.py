"""How the engine `opencascade-brep` runs: a `Runner`. Importing this module loads the kernel.

Only ever imported by a zygote and its children. Nothing here or below may use the kernel's
parallel mode: its threads would be in the zygote's way, and are not there after a fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.engines.solid import checks, gate, kernel, measure
from tempa.engines.solid.brep.flanged_tube import flanged_tube
from tempa.engines.solid.exports import step
from tempa.engines.solid.exports.export import Part, export, need_mesh
from tempa.engines.solid.exports.tessellate import tessellate
from tempa.engines.solid.templates.tube import Tube
from tempa.jobs.ports import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from OCP.TopoDS import TopoDS_Solid

    from tempa.engines.solid.exports.mesh import Mesh
    from tempa.engines.solid.measure import Mass
    from tempa.jobs.ports import MadeFile, Progress

TEMPLATE = "flanged-tube@1"
_SMALL = Tube(
    outer_radius=20.0,
    inner_radius=5.0,
    length=10.0,
    fillet_radius=1.0,
    hole_count=2,
    pitch_radius=10.0,
    hole_radius=2.0,
)


def load() -> None:
    """Ready the kernel, which was imported with this module."""
    kernel.silence()
    step.prepare()


def rehearse() -> None:
    """Build and check the smallest part that has everything; nothing is written, nothing kept."""
    solid = flanged_tube(_SMALL)
    _measured(solid, gate.accept(solid, solids=1, reference=_SMALL.reference))


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Build a part, let it pass the gate, and write it in every format asked for.

    Raises:
        TempaError: a code of the kernel's failures, of the gate, of the mesher, of an export, or
            CHECK_FAILED.
    """
    progress("building", 0.0)
    tube = Tube.of(work["parameters"])
    solid = _build(tube)
    progress("checking", 0.2)
    reference = tube.reference
    mass = gate.accept(solid, solids=1, reference=reference)
    measured = _measured(solid, mass) | {
        "reference": {
            "method": reference.method,
            "volume": reference.volume,
            "relative_error": mass.error(reference.volume),
        }
    }
    mesh = _mesh(work, tube, progress)
    measured |= _meshed(mesh)
    checks.require(work["checks"], measured)
    part = Part(solid, reference, mesh)
    files = _export(work["export_formats"], part, folder, progress)
    return Report(files=files, measurements=measured)


def _build(tube: Tube) -> TopoDS_Solid:
    if tube.fillet_radius > 0.0:
        with kernel.failing_as("FILLET_FAILED", radius=tube.fillet_radius):
            return flanged_tube(tube)
    with kernel.failing_as("EMPTY_RESULT"):
        return flanged_tube(tube)


def _measured(solid: TopoDS_Solid, mass: Mass) -> dict[str, Any]:
    with kernel.failing_as("SELF_INTERSECTION"):
        return {
            "volume": mass.volume,
            "area": measure.area(solid, adaptive=mass.adaptive),
            **measure.counts(solid),
            "bounding_box": [list(corner) for corner in measure.bounding_box(solid)],
            "center_of_mass": list(mass.center),
        }


def _mesh(work: Mapping[str, Any], tube: Tube, progress: Progress) -> Mesh | None:
    """The mesh, if a format or a check needs one."""
    if not (need_mesh(work["export_formats"]) or work["checks"].get("watertight")):
        return None
    progress("meshing", 0.3)
    linear, angular = work["tolerance"]["linear"], work["tolerance"]["angular"]
    return tessellate(tube, linear=linear, angular=angular, reference=tube.reference)


def _meshed(mesh: Mesh | None) -> dict[str, Any]:
    """Without a mesh it is the gate that knows: it let pass only what has no open edge."""
    if mesh is None:
        return {"watertight": True}
    return {"watertight": mesh.watertight, "triangles": mesh.triangle_count}


def _export(names: Sequence[str], part: Part, folder: Path, progress: Progress) -> tuple[MadeFile, ...]:
    files = []
    for number, name in enumerate(names):
        progress("exporting", round(0.6 + 0.4 * number / len(names), 3))
        files.append(export(name, part, folder))
    return tuple(files)
