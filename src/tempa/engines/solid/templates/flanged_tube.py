"""Template `flanged-tube@1`: its parameters, and the rules between them. Lengths in mm.

A tube along +Z from z = 0; both outer rims filleted; `count` through-holes parallel to Z, their
centres evenly spaced on the pitch circle, the first on +X.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.solid.reading import Fields, Found, read_fields, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ID = "flanged-tube@1"

_LIMITS = DEFAULT_LIMITS
_MIN, _MAX, _GAP = _LIMITS.length_min, _LIMITS.length_max, _LIMITS.difference_min
_SLACK = 1e-9  # a limit computed in floats may lie a rounding below the number a person reads off it

Length = Annotated[float, Field(ge=_MIN, le=_MAX, json_schema_extra={"unit": "mm"})]


class HolePattern(Fields):
    """Through-holes parallel to Z, evenly spaced on a circle, the first centre on +X."""

    count: int = Field(ge=1, le=_LIMITS.holes_max, description="Number of holes.")
    pitch_diameter: Length = Field(description="Diameter of the circle on which the centres lie.")
    hole_diameter: Length = Field(description="Diameter of each hole.")


class FlangedTube(Fields):
    """Parameters of the template."""

    outer_diameter: Length = Field(description="Outer diameter.")
    inner_diameter: Length = Field(description="Diameter of the bore.")
    length: Length = Field(description="Length along Z.")
    fillet_radius: Annotated[float, Field(ge=0, le=_MAX, json_schema_extra={"unit": "mm"})] | None = Field(
        None, description="Radius of the fillet on both outer rims; 0 or absent means none."
    )
    hole_pattern: HolePattern | None = Field(None, description="Absent means no holes.")


CONSTRAINTS = (
    ("inner_diameter <= outer_diameter - 0.002", "The wall is at least 0.001 mm thick."),
    (
        "fillet_radius <= min((outer_diameter - inner_diameter) / 2, length / 2) - 0.001",
        "The fillets fit the wall and the length. They may meet the holes.",
    ),
    ("fillet_radius == 0 or fillet_radius >= 0.001", "A fillet is at least 0.001 mm."),
    ("pitch_diameter - hole_diameter >= inner_diameter + 0.002", "Every hole is clear of the bore."),
    ("pitch_diameter + hole_diameter <= outer_diameter - 0.002", "Every hole is clear of the rim."),
    (
        "count == 1 or hole_diameter <= pitch_diameter * sin(pi / count) - 0.001",
        "Every hole is clear of its neighbours.",
    ),
)


def read(raw: object, pointer: str) -> Found:
    """Read parameters: `values` are plain JSON with all defaults filled in if there is no problem."""
    found = read_fields(FlangedTube, raw, pointer)
    found.problems += _rules(found.values, pointer)
    if not found.problems:
        found.values = _canonical(found.values)
    return found


def describe() -> dict[str, Any]:
    """Its entry in `GET /v1/templates`."""
    constraints = [{"expression": expression, "message": message} for expression, message in CONSTRAINTS]
    return {
        "id": ID,
        "title": "Flanged tube",
        "description": "A tube with filleted outer rims and a circle of through-holes.",
        "schema": {**schema(FlangedTube), "x-constraints": constraints},
        "example": {
            "outer_diameter": 120.5,
            "inner_diameter": 45.0,
            "length": 300.0,
            "fillet_radius": 2.5,
            "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
        },
    }


def _canonical(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**values, "fillet_radius": values["fillet_radius"] or 0.0}


def _rules(values: Mapping[str, Any], pointer: str) -> Iterator[Problem]:
    outer, inner = values.get("outer_diameter"), values.get("inner_diameter")
    if outer is not None and inner is not None and inner > outer - 2 * _GAP + _SLACK:
        yield _at_most(f"{pointer}/inner_diameter", outer - 2 * _GAP, "so that a wall is left")
    yield from _fillet_rules(values, pointer)
    if values.get("hole_pattern"):
        yield from _hole_rules(values["hole_pattern"], outer, inner, f"{pointer}/hole_pattern")


def _fillet_rules(values: Mapping[str, Any], pointer: str) -> Iterator[Problem]:
    radius = values.get("fillet_radius")
    if not radius:
        return
    where = f"{pointer}/fillet_radius"
    if radius < _MIN:
        yield Problem(where, f"A fillet is at least {_MIN:g} mm; 0 means none.", _MIN)
    limit = _fillet_limit(values)
    if limit is None or radius <= limit + _SLACK:
        return
    if limit < _MIN:
        yield Problem(where, "No fillet fits this wall and length; 0 means none.", 0.0)
    else:
        yield _at_most(where, limit, "the most that fits the wall and half the length")


def _fillet_limit(values: Mapping[str, Any]) -> float | None:
    """The largest feasible fillet, from the dimensions that could be read."""
    outer, inner, length = (values.get(name) for name in ("outer_diameter", "inner_diameter", "length"))
    room = [length / 2] if length is not None else []
    if outer is not None and inner is not None:
        room.append((outer - inner) / 2)
    return min(room) - _GAP if room else None


def _hole_rules(
    holes: Mapping[str, Any], outer: float | None, inner: float | None, pointer: str
) -> Iterator[Problem]:
    count, pitch, hole = (holes.get(name) for name in ("count", "pitch_diameter", "hole_diameter"))
    if pitch is None or hole is None:
        return
    where = f"{pointer}/hole_diameter"
    limits = []
    if inner is not None:
        limits.append((pitch - inner - 2 * _GAP, "so that every hole is clear of the bore"))
    if outer is not None:
        limits.append((outer - pitch - 2 * _GAP, "so that every hole is clear of the rim"))
    if count is not None and count > 1:
        limits.append(
            (pitch * math.sin(math.pi / count) - _GAP, "so that the holes are clear of one another")
        )
    for limit, why in limits:
        if hole > limit + _SLACK:
            yield _at_most(where, limit, why) if limit >= _MIN else _no_room(pointer, why)


def _at_most(pointer: str, limit: float, why: str) -> Problem:
    rounded = round(limit, 9)
    return Problem(pointer, f"At most {rounded:.12g} mm, {why}.", rounded)


def _no_room(pointer: str, why: str) -> Problem:
    return Problem(f"{pointer}/pitch_diameter", f"No hole fits on this circle {why}; choose another.")
