"""What every export must pass: the file is opened again, and holds what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.solid import measure, topology
from tempa.engines.solid.kernel import failing_as

if TYPE_CHECKING:
    from pathlib import Path

    from OCP.TopoDS import TopoDS_Shape


def same(path: Path, what: str, *, wrote: object, found: object) -> None:
    """Both are equal.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    if wrote != found:
        raise different(path, what, wrote=wrote, found=found)


def different(path: Path, what: str, *, wrote: object = None, found: object = None) -> TempaError:
    """The error that says so; values are told only if they are short."""
    values = {"wrote": wrote, "found": found}
    told = {name: value for name, value in values.items() if isinstance(value, int | float | str)}
    return TempaError(
        "EXPORT_FAILED", f"{path.name} does not read back the same.", detail={"differs": what, **told}
    )


def same_solid(path: Path, shape: TopoDS_Shape, *, volume: float, allowance: float) -> None:
    """A shape that was read from `path` is one solid, of `volume`, to `allowance` (mm3 both).

    Raises:
        TempaError: EXPORT_FAILED.
    """
    with failing_as("EXPORT_FAILED", file=path.name):
        if shape.IsNull():
            raise different(path, "solids", wrote=1, found=0)
        same(path, "solids", wrote=1, found=topology.count(shape, topology.SOLID))
        found = measure.mass(shape, volume, allowance=allowance)
        if not abs(found.volume - volume) <= allowance:
            raise different(path, "volume", wrote=volume, found=found.volume)
