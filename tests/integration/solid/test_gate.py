"""The acceptance gate, fed with shapes that the kernel hands out without a word."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from OCP.BRep import BRep_Builder
from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakePolygon
from OCP.BRepPrimAPI import (
    BRepPrimAPI_MakeBox,
    BRepPrimAPI_MakeCone,
    BRepPrimAPI_MakeCylinder,
    BRepPrimAPI_MakePrism,
    BRepPrimAPI_MakeSphere,
    BRepPrimAPI_MakeTorus,
)
from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS, TopoDS_Compound, TopoDS_Shape, TopoDS_Shell, TopoDS_Solid

from tempa.core.errors import TempaError
from tempa.engines.solid import checks, gate, measure, topology
from tempa.engines.solid.kernel import failing_as
from tempa.engines.solid.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BUILDER = BRep_Builder()
BOX_VOLUME = 10.0 * 20.0 * 30.0


def box() -> TopoDS_Shape:
    return BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Solid()


def compound(*shapes: TopoDS_Shape) -> TopoDS_Compound:
    made = TopoDS_Compound()
    BUILDER.MakeCompound(made)
    for shape in shapes:
        BUILDER.Add(made, shape)
    return made


def solid_of(faces: Iterable[TopoDS_Shape]) -> TopoDS_Solid:
    shell, made = TopoDS_Shell(), TopoDS_Solid()
    BUILDER.MakeShell(shell)
    for face in faces:
        BUILDER.Add(shell, face)
    BUILDER.MakeSolid(made)
    BUILDER.Add(made, shell)
    return made


def faces_of_box() -> list[TopoDS_Shape]:
    return list(topology.uses(box(), topology.FACE))


def bow_tie() -> TopoDS_Shape:
    """A prism over a polygon that crosses itself: closed all the same."""
    polygon = BRepBuilderAPI_MakePolygon()
    for x, y in ((0, 0), (4, 4), (4, 0), (0, 4)):
        polygon.Add(gp_Pnt(float(x), float(y), 0.0))
    polygon.Close()
    face = BRepBuilderAPI_MakeFace(polygon.Wire(), True).Face()
    return BRepPrimAPI_MakePrism(face, gp_Vec(0.0, 0.0, 5.0)).Shape()


def known(volume: float) -> Reference:
    return Reference("closed-form", volume, area=2200.0, extent=30.0)


def refusal(shape: TopoDS_Shape | None, reference: float = BOX_VOLUME) -> TempaError:
    with pytest.raises(TempaError) as refused:
        gate.accept(shape, solids=1, reference=known(reference))
    return refused.value


def test_a_sound_solid_passes_with_its_volume_and_centre() -> None:
    mass = gate.accept(box(), solids=1, reference=known(BOX_VOLUME))
    assert mass.volume == pytest.approx(BOX_VOLUME, rel=1e-14)
    assert mass.center == pytest.approx((5.0, 10.0, 15.0), abs=1e-12)


@pytest.mark.parametrize(
    ("make", "volume"),
    [
        (lambda: BRepPrimAPI_MakeSphere(7.0).Solid(), 4.0 / 3.0 * math.pi * 343.0),
        (lambda: BRepPrimAPI_MakeCone(5.0, 0.0, 9.0).Solid(), math.pi * 25.0 * 3.0),
        (lambda: BRepPrimAPI_MakeTorus(9.0, 2.0).Solid(), 2.0 * math.pi**2 * 9.0 * 4.0),
    ],
    ids=["sphere", "cone", "torus"],
)
def test_seams_and_poles_are_no_open_edges(make: Callable[[], TopoDS_Shape], volume: float) -> None:
    assert gate.accept(make(), solids=1, reference=known(volume)).volume == pytest.approx(volume, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        (lambda: None, "EMPTY_RESULT"),
        (TopoDS_Shape, "EMPTY_RESULT"),
        (compound, "EMPTY_RESULT"),
        (lambda: compound(*faces_of_box()), "EMPTY_RESULT"),
        (lambda: compound(box(), BRepPrimAPI_MakeSphere(1.0).Solid()), "DISCONNECTED_RESULT"),
        (lambda: solid_of(faces_of_box()[:5]), "NON_MANIFOLD_EDGES"),
        (lambda: solid_of(faces_of_box() * 2), "NON_MANIFOLD_EDGES"),
        (
            lambda: solid_of([*faces_of_box()[:5], faces_of_box()[5].Reversed()]),
            "NON_MANIFOLD_EDGES",
        ),
        (bow_tie, "SELF_INTERSECTION"),
        (lambda: box().Reversed(), "VOLUME_MISMATCH"),
    ],
    ids=[
        "nothing",
        "null",
        "empty compound",
        "faces without a solid",
        "two solids",
        "open shell",
        "doubled faces",
        "a face the wrong way round",
        "a profile that crosses itself",
        "inside out",
    ],
)
def test_a_wrong_shape_is_refused_with_its_code(shape: Callable[[], TopoDS_Shape | None], code: str) -> None:
    assert refusal(shape()).code == code


def test_the_codes_tell_their_numbers() -> None:
    two = refusal(compound(box(), BRepPrimAPI_MakeSphere(1.0).Solid()))
    assert two.detail == {"expected": 1, "found": 2}
    open_box = refusal(solid_of(faces_of_box()[:5]))
    assert open_box.detail == {"edges": 4}


@pytest.mark.parametrize("factor", [1.0 + 2e-9, 1.0 - 2e-9, -1.0, 0.0, math.nan])
def test_a_volume_other_than_the_reference_is_refused_with_both(factor: float) -> None:
    error = refusal(box(), BOX_VOLUME * factor)
    assert error.code == "VOLUME_MISMATCH"
    assert error.detail["volume"] == pytest.approx(BOX_VOLUME, rel=1e-14)
    assert error.detail["reference"] == pytest.approx(BOX_VOLUME * factor, nan_ok=True)


def test_a_volume_within_a_billionth_passes() -> None:
    mass = gate.accept(box(), solids=1, reference=known(BOX_VOLUME * (1.0 + 5e-10)))
    assert mass.volume == pytest.approx(BOX_VOLUME, rel=1e-14)


# --- measures ---------------------------------------------------------------------------------------------


def turned(shape: TopoDS_Shape, degrees: float, axis: tuple[float, float, float]) -> TopoDS_Shape:
    motion = gp_Trsf()
    motion.SetRotation(gp_Ax1(gp_Pnt(0.0, 0.0, 0.0), gp_Dir(*axis)), math.radians(degrees))
    return shape.Moved(TopLoc_Location(motion))


def tilted_torus_reach() -> float:
    """How far a torus 9 / 2 turned 30 degrees about X reaches along Y."""
    return 9.0 * math.cos(math.radians(30.0)) + 2.0


@pytest.mark.parametrize(
    ("make", "high"),
    [
        (lambda: BRepPrimAPI_MakeTorus(9.0, 2.0).Solid(), (11.0, 11.0, 2.0)),
        (lambda: BRepPrimAPI_MakeSphere(7.0).Solid(), (7.0, 7.0, 7.0)),
        (
            lambda: turned(BRepPrimAPI_MakeTorus(9.0, 2.0).Solid(), 30.0, (1.0, 0.0, 0.0)),
            (11.0, tilted_torus_reach(), 6.5),
        ),
        (
            lambda: turned(BRepPrimAPI_MakeCylinder(3.0, 8.0).Solid(), 90.0, (1.0, 0.0, 0.0)),
            (3.0, 0.0, 3.0),
        ),
    ],
    ids=["torus", "sphere", "tilted torus", "lying cylinder"],
)
def test_the_box_touches_the_shape(
    make: Callable[[], TopoDS_Shape], high: tuple[float, float, float]
) -> None:
    assert measure.bounding_box(make())[1] == pytest.approx(high, abs=1e-6)


# --- the kernel's exceptions ------------------------------------------------------------------------------


def test_what_the_kernel_throws_gets_the_code_and_its_words_stay_in_the_detail() -> None:
    with pytest.raises(TempaError) as failed, failing_as("FILLET_FAILED", radius=3.0):
        BRepPrimAPI_MakeBox(0.0, 1.0, 1.0).Solid()
    assert failed.value.code == "FILLET_FAILED"
    assert failed.value.detail["radius"] == 3.0
    assert failed.value.detail["kernel"].startswith("Standard_")
    assert "Standard_" not in failed.value.message


def test_a_fault_of_ours_is_not_blamed_on_the_part() -> None:
    with pytest.raises(KeyError), failing_as("FILLET_FAILED"):
        raise KeyError("parameters")


# --- the request's checks ---------------------------------------------------------------------------------

MEASURED: dict[str, Any] = {
    "solids": 1,
    "volume": BOX_VOLUME,
    "bounding_box": [[0.0, 0.0, 0.0], [10.0, 20.0, 30.0]],
    "watertight": True,
}


@pytest.mark.parametrize(
    ("check", "holds", "fails", "found"),
    [
        ("solids", 1, 2, 1),
        ("volume_min", BOX_VOLUME, BOX_VOLUME + 0.1, BOX_VOLUME),
        ("volume_max", BOX_VOLUME, BOX_VOLUME - 0.1, BOX_VOLUME),
        (
            "bounding_box",
            [[0, 0, 0], [10, 20, 30]],
            [[0, 0, 0], [10, 19.9, 30]],
            MEASURED["bounding_box"],
        ),
        (
            "bounding_box",
            [[-1, -1, -1], [11, 21, 31]],
            [[0.1, 0, 0], [10, 20, 30]],
            MEASURED["bounding_box"],
        ),
    ],
)
def test_a_check_holds_or_tells_what_was_asked_and_found(
    check: str, holds: Any, fails: Any, found: Any
) -> None:
    checks.require({check: holds}, MEASURED)
    with pytest.raises(TempaError) as failed:
        checks.require({check: fails}, MEASURED)
    assert failed.value.code == "CHECK_FAILED"
    assert failed.value.detail == {"failed": [{"check": check, "asked": fails, "found": found}]}


def test_watertight_asked_for_a_leaking_mesh_fails() -> None:
    checks.require({"watertight": True}, MEASURED)
    with pytest.raises(TempaError) as failed:
        checks.require({"watertight": True}, MEASURED | {"watertight": False})
    assert failed.value.detail["failed"] == [{"check": "watertight", "asked": True, "found": False}]


def test_every_check_that_fails_is_told_and_null_asks_for_nothing() -> None:
    asked = {"solids": 3, "volume_min": None, "volume_max": 1.0, "bounding_box": None, "watertight": None}
    with pytest.raises(TempaError) as failed:
        checks.require(asked, MEASURED)
    assert [entry["check"] for entry in failed.value.detail["failed"]] == ["solids", "volume_max"]


def test_the_bow_tie_is_closed() -> None:
    """Or the test above would not show that the kernel's own check is asked."""
    gate._require_closed(TopoDS.Solid(bow_tie()))
