"""The acceptance gate: what a kernel calls done is not a part until it has passed here.

The kernel alone is not to be believed: of 153 fillet radii on one tube, 50 came out valid by its
own check and wrong by 5 % in volume; a wall of 1e-7 came out as a valid shape without a solid.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from OCP.BRep import BRep_Tool
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.TopAbs import TopAbs_Orientation
from OCP.TopoDS import TopoDS

from tempa.core.errors import TempaError
from tempa.engines.solid import measure, topology
from tempa.engines.solid.kernel import failing_as

if TYPE_CHECKING:
    from OCP.TopoDS import TopoDS_Shape

    from tempa.engines.solid.measure import Mass
    from tempa.engines.solid.reference import Reference


def accept(shape: TopoDS_Shape | None, *, solids: int, reference: Reference) -> Mass:
    """Let a shape through that is `solids` closed and valid solids of the volume of `reference`.

    `reference` must come from somewhere else than the kernel. The volume agrees to its allowance.

    Raises:
        TempaError: EMPTY_RESULT, DISCONNECTED_RESULT, NON_MANIFOLD_EDGES, SELF_INTERSECTION or
            VOLUME_MISMATCH.
    """
    with failing_as("SELF_INTERSECTION"):
        _require_solids(shape, solids)
        _require_closed(shape)
        _require_valid(shape)
        return _require_volume(shape, reference)


def _require_solids(shape: TopoDS_Shape | None, solids: int) -> None:
    if shape is None or shape.IsNull():
        raise TempaError("EMPTY_RESULT", detail={"expected": solids, "found": 0})
    found = sum(1 for _ in topology.uses(shape, topology.SOLID))
    if found == 0:
        raise TempaError("EMPTY_RESULT", detail={"expected": solids, "found": 0})
    if found != solids:
        message = f"The result has {found} solids; {solids} expected."
        raise TempaError("DISCONNECTED_RESULT", message, detail={"expected": solids, "found": found})


def _require_closed(shape: TopoDS_Shape) -> None:
    """Every edge must be run once each way: an open, doubled or twisted shell fails here.

    A degenerated edge is a point (the pole of a sphere) and joins nothing.
    """
    edges, runs = topology.ShapeMap(), Counter[tuple[int, bool]]()
    for face in topology.uses(shape, topology.FACE):
        for edge in topology.uses(face, topology.EDGE):
            if not BRep_Tool.Degenerated_s(TopoDS.Edge(edge)):
                forward = edge.Orientation() == TopAbs_Orientation.TopAbs_FORWARD
                runs[edges.Add(edge), forward] += 1
    numbers = range(1, edges.Extent() + 1)
    bad = sum(1 for edge in numbers if runs[edge, True] != 1 or runs[edge, False] != 1)
    if bad:
        raise TempaError("NON_MANIFOLD_EDGES", detail={"edges": bad})


def _require_valid(shape: TopoDS_Shape) -> None:
    if not BRepCheck_Analyzer(shape).IsValid():
        raise TempaError("SELF_INTERSECTION")


def _require_volume(shape: TopoDS_Shape, reference: Reference) -> Mass:
    found = measure.mass(shape, reference.volume, allowance=reference.allowance)
    if not found.volume > 0.0 or not reference.allows(found.volume):
        error = found.error(reference.volume)
        detail = {"volume": found.volume, "reference": reference.volume, "relative_error": error}
        raise TempaError("VOLUME_MISMATCH", detail=detail)
    return found
