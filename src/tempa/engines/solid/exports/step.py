"""STEP (ISO 10303-21, AP214) in millimetres, the same bytes for the same solid."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from OCP.APIHeaderSection import APIHeaderSection_MakeHeader
from OCP.IFSelect import IFSelect_ReturnStatus
from OCP.Interface import Interface_Static
from OCP.StepBasic import StepBasic_Product
from OCP.STEPControl import (
    STEPControl_Controller,
    STEPControl_Reader,
    STEPControl_StepModelType,
    STEPControl_Writer,
)
from OCP.StepData import StepData_StepWriter
from OCP.STEPEdit import STEPEdit
from OCP.TCollection import TCollection_AsciiString, TCollection_HAsciiString

from tempa.core.errors import TempaError
from tempa.engines.solid.exports.readback import different, same_solid
from tempa.engines.solid.kernel import failing_as

if TYPE_CHECKING:
    from pathlib import Path

    from OCP.StepData import StepData_StepModel
    from OCP.TopoDS import TopoDS_Shape

# The files say nothing of when or where they were made: the same part has the same bytes.
TIME_STAMP = "1970-01-01T00:00:00"
PRODUCT = "model"
DONE = IFSelect_ReturnStatus.IFSelect_RetDone
# As many digits as give every double back. The writer's own 13 moved a bore by 3e-11 mm, and with it
# the volume of a thin tube by 2.8e-9 (docs/decisions/0010).
REAL = "%.16E"
# A verification mends nothing. What the reader would do about wires that cross themselves takes the
# square of their edges: 23 of 26 s for 1,024 holes across the ends of the flats.
_MENDING_OFF = "FixShape.FixSelfIntersectionMode"


def prepare() -> None:
    """Register the translator, which also makes its settings, and fix those that change a file."""
    STEPControl_Controller.Init_s()
    for name, value in (
        ("write.step.schema", "AP214IS"),
        ("write.step.unit", "MM"),
        ("xstep.cascade.unit", "MM"),
    ):
        assert Interface_Static.SetCVal_s(name, value), name


def write(solid: TopoDS_Shape, path: Path) -> None:
    """Write one solid.

    Raises:
        TempaError: EXPORT_FAILED.
        OSError: the file could not be written.
    """
    with failing_as("EXPORT_FAILED", file=path.name):
        prepare()
        writer = STEPControl_Writer()
        status = writer.Transfer(solid, STEPControl_StepModelType.STEPControl_ManifoldSolidBrep)
        if status != DONE:
            raise TempaError("EXPORT_FAILED", detail={"file": path.name, "kernel": status.name})
        _name(writer.Model(), path.name)
        path.write_bytes(_text_of(writer.Model()))


def _text_of(model: StepData_StepModel) -> bytes:
    writer, stream = StepData_StepWriter(model), io.BytesIO()
    reals = writer.FloatWriter()
    reals.SetFormat(REAL)
    reals.SetZeroSuppress(False)  # it cuts a text of this length short, exponent and all
    writer.SendModel(STEPEdit.Protocol_s())
    writer.Print(stream)
    return stream.getvalue()


def _name(model: StepData_StepModel, file_name: str) -> None:
    """Put names of our own where the writer puts the time and a count of what it wrote before."""
    for number in range(1, model.NbEntities() + 1):
        entity = model.Value(number)
        if isinstance(entity, StepBasic_Product):
            entity.SetId(_text(PRODUCT))
            entity.SetName(_text(PRODUCT))
    header = APIHeaderSection_MakeHeader(model)
    header.SetName(_text(file_name))
    header.SetTimeStamp(_text(TIME_STAMP))
    header.SetAuthorValue(1, _text(""))
    header.SetOrganizationValue(1, _text(""))
    header.SetOriginatingSystem(_text("Tempa"))
    header.SetAuthorisation(_text(""))


def _ascii(value: str) -> TCollection_AsciiString:
    return TCollection_AsciiString(value)


def _text(value: str) -> TCollection_HAsciiString:
    return TCollection_HAsciiString(value)


def verify(path: Path, *, volume: float, allowance: float) -> None:
    """Read the file again: one solid of this volume, to `allowance` (mm3 both).

    Raises:
        TempaError: EXPORT_FAILED.
    """
    same_solid(path, _read(path), volume=volume, allowance=allowance)


def _read(path: Path) -> TopoDS_Shape:
    with failing_as("EXPORT_FAILED", file=path.name):
        reader = STEPControl_Reader()
        status = reader.ReadFile(str(path))
        if status != DONE:  # to go on with what was not read is a SIGSEGV
            raise different(path, "syntax", wrote=DONE.name, found=status.name)
        mending = reader.GetShapeFixParameters()
        mending.Bind(_ascii(_MENDING_OFF), _ascii("0"))
        reader.SetShapeFixParameters(mending)
        reader.TransferRoots()
        if reader.NbShapes() != 1:
            raise different(path, "shapes", wrote=1, found=reader.NbShapes())
        return reader.OneShape()
