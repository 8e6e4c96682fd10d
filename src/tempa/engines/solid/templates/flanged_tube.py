"""Template `flanged-tube@1`: its parameters, and the rules between them. Lengths in mm.

A tube along +Z from z = 0; both outer rims filleted; `count` through-holes parallel to Z, their
centres evenly spaced on the pitch circle, the first on +X.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.fields import Fields, Found, read_fields, schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tempa.core.limits import Limits

ID = "flanged-tube@1"

_SLACK = 1e-9  # a limit computed in floats may lie a rounding below the number a person reads off it


@cache
def parameters(limits: Limits) -> type[Fields]:
    """The model of the parameters, within `limits`; one for each set of limits, and so one for a server."""
    low, high = limits.length_min, limits.length_max

    def extent(description: str) -> Any:
        return Field(ge=low, le=high, json_schema_extra={"unit": "mm"}, description=description)

    class HolePattern(Fields):
        """Through-holes parallel to Z, evenly spaced on a circle, the first centre on +X."""

        count: int = Field(ge=1, le=limits.holes_max, description="Number of holes.")
        pitch_diameter: float = extent("Diameter of the circle on which the centres lie.")
        hole_diameter: float = extent("Diameter of each hole.")

    class FlangedTube(Fields):
        """Parameters of the template."""

        outer_diameter: float = extent("Outer diameter.")
        inner_diameter: float = extent("Diameter of the bore.")
        length: float = extent("Length along Z.")
        fillet_radius: Annotated[float, Field(ge=0, le=high, json_schema_extra={"unit": "mm"})] | None = (
            Field(None, description="Radius of the fillet on both outer rims; 0 or absent means none.")
        )
        hole_pattern: HolePattern | None = Field(None, description="Absent means no holes.")

    return FlangedTube


def constraints(limits: Limits) -> list[dict[str, str]]:
    """The rules between fields, for people and for forms: `expression` and `message` of each."""
    low, gap, gaps = (
        f"{x:.12g}" for x in (limits.length_min, limits.difference_min, 2 * limits.difference_min)
    )
    rules = (
        (f"inner_diameter <= outer_diameter - {gaps}", f"The wall is at least {gap} mm thick."),
        (
            f"fillet_radius <= min((outer_diameter - inner_diameter) / 2, length / 2) - {gap}",
            "The fillets fit the wall and the length. They may meet the holes.",
        ),
        (f"fillet_radius == 0 or fillet_radius >= {low}", f"A fillet is at least {low} mm."),
        (f"pitch_diameter - hole_diameter >= inner_diameter + {gaps}", "Every hole is clear of the bore."),
        (f"pitch_diameter + hole_diameter <= outer_diameter - {gaps}", "Every hole is clear of the rim."),
        (
            f"count == 1 or hole_diameter <= pitch_diameter * sin(pi / count) - {gap}",
            "Every hole is clear of its neighbours.",
        ),
    )
    return [{"expression": expression, "message": message} for expression, message in rules]


def read(raw: object, pointer: str, limits: Limits) -> Found:
    """Read parameters: `values` are plain JSON with all defaults filled in if there is no problem."""
    found = read_fields(parameters(limits), raw, pointer)
    found.problems += _rules(found.values, pointer, limits)
    if not found.problems:
        found.values = _canonical(found.values)
    return found


def describe(limits: Limits) -> dict[str, Any]:
    """Its entry in `GET /v1/templates`."""
    return {
        "id": ID,
        "title": "Flanged tube",
        "description": "A tube with filleted outer rims and a circle of through-holes.",
        "schema": {**schema(parameters(limits)), "x-constraints": constraints(limits)},
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


def _rules(values: Mapping[str, Any], pointer: str, limits: Limits) -> Iterator[Problem]:
    outer, inner = values.get("outer_diameter"), values.get("inner_diameter")
    gap = limits.difference_min
    if outer is not None and inner is not None and inner > outer - 2 * gap + _SLACK:
        yield _at_most(f"{pointer}/inner_diameter", outer - 2 * gap, "so that a wall is left")
    yield from _fillet_rules(values, pointer, limits)
    if values.get("hole_pattern"):
        for limit, why in _hole_limits(values["hole_pattern"], outer, inner, gap):
            yield from _hole_rule(values["hole_pattern"], limit, why, f"{pointer}/hole_pattern", limits)


def _fillet_rules(values: Mapping[str, Any], pointer: str, limits: Limits) -> Iterator[Problem]:
    radius = values.get("fillet_radius")
    if not radius:
        return
    where, low = f"{pointer}/fillet_radius", limits.length_min
    if radius < low:
        yield Problem(where, f"A fillet is at least {low:.12g} mm; 0 means none.", low)
    limit = _fillet_limit(values, limits.difference_min)
    if limit is None or radius <= limit + _SLACK:
        return
    if limit < low:
        yield Problem(where, "No fillet fits this wall and length; 0 means none.", 0.0)
    else:
        yield _at_most(where, limit, "the most that fits the wall and half the length")


def _fillet_limit(values: Mapping[str, Any], gap: float) -> float | None:
    """The largest feasible fillet, from the dimensions that could be read."""
    outer, inner, length = (values.get(name) for name in ("outer_diameter", "inner_diameter", "length"))
    room = [length / 2] if length is not None else []
    if outer is not None and inner is not None:
        room.append((outer - inner) / 2)
    return min(room) - gap if room else None


def _hole_limits(
    holes: Mapping[str, Any], outer: float | None, inner: float | None, gap: float
) -> Iterator[tuple[float, str]]:
    """The largest holes that fit, from the dimensions that could be read; and what for."""
    count, pitch = holes.get("count"), holes.get("pitch_diameter")
    if pitch is None:
        return
    if inner is not None:
        yield pitch - inner - 2 * gap, "so that every hole is clear of the bore"
    if outer is not None:
        yield outer - pitch - 2 * gap, "so that every hole is clear of the rim"
    if count is not None and count > 1:
        yield pitch * math.sin(math.pi / count) - gap, "so that the holes are clear of one another"


def _hole_rule(
    holes: Mapping[str, Any], limit: float, why: str, pointer: str, limits: Limits
) -> Iterator[Problem]:
    hole = holes.get("hole_diameter")
    if hole is None or hole <= limit + _SLACK:
        return
    fits = limit >= limits.length_min
    yield _at_most(f"{pointer}/hole_diameter", limit, why) if fits else _no_room(pointer, why)


def _at_most(pointer: str, limit: float, why: str) -> Problem:
    rounded = round(limit, 9)
    return Problem(pointer, f"At most {rounded:.12g} mm, {why}.", rounded)


def _no_room(pointer: str, why: str) -> Problem:
    return Problem(f"{pointer}/pitch_diameter", f"No hole fits on this circle {why}; choose another.")
