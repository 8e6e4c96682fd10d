"""`limits.*` are settings: the door holds those that it was given, not those that Tempa comes with."""

from __future__ import annotations

import math
from typing import Any, cast

import jsonschema
import pytest
from pydantic import ValidationError

from tempa.core.clock import SystemClock
from tempa.core.errors import Refusal
from tempa.core.limits import DEFAULT_LIMITS, Limits
from tempa.engines.solid.about import OpencascadeBrep
from tempa.jobs.intake import Addresses, Intake
from tests.unit.solid.test_flanged_tube import EXAMPLE, changed

FIELDS = frozenset({"parameters", "export_formats"})
SIMPLE = {"outer_diameter": 120.5, "inner_diameter": 45.0, "length": 300.0}
URL = "https://example.com/"


def problems(limits: Limits, body: dict[str, Any]) -> dict[str, Any]:
    """Pointer -> limit of everything that a door with these limits finds wrong."""
    nothing = cast("Any", None)  # reading is pure
    intake = Intake(
        store=nothing,
        clock=SystemClock(),
        engines={"opencascade-brep": OpencascadeBrep()},
        limits=limits,
        addresses=Addresses(),
        meter=nothing,
        retention_days=30,
    )
    try:
        intake.read({"parameters": EXAMPLE, **body}, FIELDS, "opencascade-brep")
    except Refusal as refusal:
        if refusal.slug != "invalid-request":
            raise
        return {problem.pointer: problem.limit for problem in reversed(refusal.errors)}
    return {}


@pytest.mark.parametrize(
    ("changes", "body", "pointer", "limit"),
    [
        ({"length_min": 2.6}, {}, "/parameters/fillet_radius", 2.6),
        ({"length_min": 46}, {"parameters": SIMPLE}, "/parameters/inner_diameter", 46),
        ({"length_max": 299}, {}, "/parameters/length", 299),
        (
            {"difference_min": 1},
            {"parameters": changed(fillet_radius=37)},
            "/parameters/fillet_radius",
            36.75,
        ),
        ({"difference_min": 40}, {"parameters": SIMPLE}, "/parameters/inner_diameter", 40.5),
        (
            {"difference_min": 2},
            {"parameters": changed(hole_diameter=32)},
            "/parameters/hole_pattern/hole_diameter",
            31,
        ),
        ({"holes_max": 5}, {}, "/parameters/hole_pattern/count", 5),
        ({"export_formats_max": 1}, {"export_formats": ["step", "stl"]}, "/export_formats", 1),
        ({"deadline_seconds_max": 60}, {"deadline_seconds": 60.5}, "/deadline_seconds", 60),
        ({"url_length_max": 64}, {"webhook_url": URL.ljust(65, "a")}, "/webhook_url", 64),
        ({"tags_max": 0}, {"tags": {"a": "b"}}, "/tags", 0),
        ({"tag_name_length_max": 2}, {"tags": {"abc": ""}}, "/tags/abc", 2),
        ({"tag_value_length_max": 2}, {"tags": {"a": "abc"}}, "/tags/a", 2),
    ],
)
def test_a_limit_that_was_tightened_refuses_and_is_named(
    changes: dict[str, Any], body: dict[str, Any], pointer: str, limit: float
) -> None:
    assert problems(DEFAULT_LIMITS, body) == {}
    assert problems(Limits(**changes), body)[pointer] == pytest.approx(limit, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "body", "pointer", "limit"),
    [
        ({"length_min": 1e-4}, {"parameters": {**SIMPLE, "length": 5e-4}}, "/parameters/length", 1e-3),
        ({"length_max": 2e6}, {"parameters": {**SIMPLE, "length": 1.5e6}}, "/parameters/length", 1e6),
        (
            {"difference_min": 1e-4},
            {"parameters": {**SIMPLE, "inner_diameter": 120.4995}},
            "/parameters/inner_diameter",
            120.498,
        ),
        (
            {"holes_max": 1500},
            {"parameters": changed(count=1500, hole_diameter=0.1)},
            "/parameters/hole_pattern/count",
            1024,
        ),
        ({"deadline_seconds_max": 700_000}, {"deadline_seconds": 700_000}, "/deadline_seconds", 604_800),
        ({"url_length_max": 3000}, {"webhook_url": URL.ljust(3000, "a")}, "/webhook_url", 2048),
    ],
)
def test_a_limit_that_was_loosened_lets_in_what_the_default_refuses(
    changes: dict[str, Any], body: dict[str, Any], pointer: str, limit: float
) -> None:
    assert problems(DEFAULT_LIMITS, body)[pointer] == pytest.approx(limit, abs=1e-9)
    assert problems(Limits(**changes), body) == {}


@pytest.mark.parametrize("seconds", [math.inf, math.nan])
def test_a_deadline_that_is_no_number_has_no_limit_to_name(seconds: float) -> None:
    assert problems(DEFAULT_LIMITS, {"deadline_seconds": seconds}) == {"/deadline_seconds": None}


def test_doors_with_other_limits_do_not_disturb_each_other() -> None:
    tight, wide = Limits(length_max=200), Limits(length_max=400)
    for _ in range(2):
        assert problems(tight, {}) == {"/parameters/length": 200}
        assert problems(wide, {}) == {}


def test_the_published_schema_shows_the_limits_in_force() -> None:
    limits = Limits(length_min=0.5, length_max=500, difference_min=0.25, holes_max=12)
    (template,) = OpencascadeBrep().describe(limits)["templates"]
    validator = jsonschema.Draft202012Validator(template["schema"])
    for within in (changed(length=500), changed(length=0.5), changed(count=12)):
        validator.validate(within)
    for beyond in (changed(length=501), changed(length=0.4), changed(count=13), changed(fillet_radius=501)):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(beyond)
    rules = [rule["expression"] for rule in template["schema"]["x-constraints"]]
    assert "inner_diameter <= outer_diameter - 0.5" in rules
    assert "fillet_radius == 0 or fillet_radius >= 0.5" in rules
    assert "count == 1 or hole_diameter <= pitch_diameter * sin(pi / count) - 0.25" in rules


@pytest.mark.parametrize(
    "changes",
    [
        {"length_min": 5, "length_max": 5},
        {"num_gaussians_min": 9000, "num_gaussians_max": 8000},
        {"deadline_seconds_max": 10**12},  # now and this is no date
    ],
)
def test_limits_that_leave_no_room_are_no_limits(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Limits(**changes)
