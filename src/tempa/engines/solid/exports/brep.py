"""The kernel's own text form (BREP), without triangles: the same bytes whether it was meshed or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from OCP.BRep import BRep_Builder
from OCP.BRepTools import BRepTools
from OCP.TopoDS import TopoDS_Shape
from OCP.TopTools import TopTools_FormatVersion

from tempa.core.errors import TempaError
from tempa.engines.solid.exports.readback import different, same_solid
from tempa.engines.solid.kernel import failing_as

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = 15


def spacing(value: float) -> float:
    """How far apart, near `value`, numbers lie in this form: where an edge begins and ends has 15 digits."""
    return 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)


def write(solid: TopoDS_Shape, path: Path) -> None:
    """Write one solid.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    version = TopTools_FormatVersion.TopTools_FormatVersion_VERSION_1
    with failing_as("EXPORT_FAILED", file=path.name):
        if not BRepTools.Write_s(solid, str(path), False, False, version):
            raise TempaError("EXPORT_FAILED", detail={"file": path.name})


def verify(path: Path, *, volume: float, allowance: float) -> None:
    """Read the file again: one solid of this volume, to `allowance` (mm3 both).

    Raises:
        TempaError: EXPORT_FAILED.
    """
    shape = TopoDS_Shape()
    with failing_as("EXPORT_FAILED", file=path.name):
        if not BRepTools.Read_s(shape, str(path), BRep_Builder()):
            raise different(path, "syntax")
    same_solid(path, shape, volume=volume, allowance=allowance)
