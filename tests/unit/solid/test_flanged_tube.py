"""The template's rules: exact limits are feasible, just beyond is refused with the limit named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.canonical import fingerprint
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.solid.about import OpencascadeBrep
from tempa.engines.solid.templates import flanged_tube
from tempa.engines.solid.templates.tube import Tube
from tempa.testing.seeds import SEED_001

EXAMPLE: dict[str, Any] = SEED_001["parameters"]
ENGINE = OpencascadeBrep()


def changed(**changes: Any) -> dict[str, Any]:
    """The example with other values; `hole_*` and `count` go into its pattern."""
    parameters = {**EXAMPLE, "hole_pattern": dict(EXAMPLE["hole_pattern"])}
    for name, value in changes.items():
        (parameters["hole_pattern"] if name in EXAMPLE["hole_pattern"] else parameters)[name] = value
    return parameters


def limits(parameters: object) -> dict[str, Any]:
    """Pointer -> limit of everything that is wrong."""
    reading = ENGINE.read({"parameters": parameters})
    assert (reading.work is None) == bool(reading.problems)
    return {problem.pointer.removeprefix("/parameters"): problem.limit for problem in reading.problems}


@pytest.mark.parametrize(
    "parameters",
    [
        EXAMPLE,
        changed(fillet_radius=37.749),  # the limit that the contract names
        changed(fillet_radius=0),
        changed(fillet_radius=1e-3),
        changed(fillet_radius=None, hole_pattern=None),
        changed(inner_diameter=120.498, fillet_radius=0, hole_pattern=None),
        changed(hole_diameter=34.998),  # clear of the bore by 1e-3
        changed(pitch_diameter=55.002),
        changed(pitch_diameter=110.498),  # clear of the rim by 1e-3
        changed(pitch_diameter=80.0, count=24, hole_diameter=80.0 * math.sin(math.pi / 24) - 1e-3),
        changed(count=1024, hole_diameter=0.2),
        changed(count=1, hole_diameter=30.0),
        changed(length=5.002),  # half the length holds the fillet and 1e-3
        {"outer_diameter": 1e6, "inner_diameter": 1e-3, "length": 1e-3},
        {"outer_diameter": 3e-3, "inner_diameter": 1e-3, "length": 1e6},
    ],
)
def test_what_the_rules_allow_is_not_refused(parameters: Mapping[str, Any]) -> None:
    assert limits(parameters) == {}


@pytest.mark.parametrize(
    ("parameters", "pointer", "limit"),
    [
        (changed(fillet_radius=37.75), "/fillet_radius", 37.749),
        (changed(fillet_radius=37.7490001), "/fillet_radius", 37.749),
        (changed(fillet_radius=9.9e-4), "/fillet_radius", 1e-3),
        (changed(fillet_radius=-1), "/fillet_radius", 0),
        (changed(length=5.001), "/fillet_radius", 2.4995),
        (changed(inner_diameter=120.4981, fillet_radius=0, hole_pattern=None), "/inner_diameter", 120.498),
        (changed(inner_diameter=120.5, fillet_radius=0, hole_pattern=None), "/inner_diameter", 120.498),
        (changed(outer_diameter=9.9e-4, inner_diameter=1e-3), "/outer_diameter", 1e-3),
        (changed(outer_diameter=1.1e6), "/outer_diameter", 1e6),
        (changed(length=0), "/length", 1e-3),
        (changed(length=-5), "/length", 1e-3),
        (changed(hole_diameter=34.9981), "/hole_pattern/hole_diameter", 34.998),
        (changed(pitch_diameter=110.4981), "/hole_pattern/hole_diameter", 9.9999),
        (changed(count=26), "/hole_pattern/hole_diameter", 80 * math.sin(math.pi / 26) - 1e-3),
        (changed(count=1_000_000), "/hole_pattern/count", 1024),
        (changed(count=0), "/hole_pattern/count", 1),
    ],
)  # fmt: skip
def test_just_beyond_is_refused_and_the_limit_named(
    parameters: Mapping[str, Any], pointer: str, limit: float
) -> None:
    found = limits(parameters)
    assert found[pointer] == pytest.approx(limit, abs=1e-9)


@pytest.mark.parametrize("value", ["45", True, None, [], {}, math.nan, math.inf, -math.inf, "1e3", 10**400])
def test_a_length_is_a_finite_number_and_nothing_else(value: Any) -> None:
    assert "/length" in limits(changed(length=value))


def test_rules_between_fields_are_told_although_others_are_broken() -> None:
    found = limits(changed(fillet_radius=50, length="long", count=2.5, colour=1))
    assert found.keys() == {"/fillet_radius", "/length", "/hole_pattern/count", "/colour"}
    assert found["/fillet_radius"] == pytest.approx(37.749)


def test_missing_fields_are_all_named() -> None:
    assert limits({"hole_pattern": {}}).keys() == {
        "/outer_diameter",
        "/inner_diameter",
        "/length",
        "/hole_pattern/count",
        "/hole_pattern/pitch_diameter",
        "/hole_pattern/hole_diameter",
    }


def test_one_request_has_one_form_whatever_the_spelling() -> None:
    spelled = {**EXAMPLE, "inner_diameter": 45, "hole_pattern": {**EXAMPLE["hole_pattern"], "count": 6.0}}
    bodies: list[dict[str, Any]] = [
        {"parameters": EXAMPLE},
        {"parameters": spelled, "template": None, "export_format": "step", "tolerance": None},
        {"parameters": spelled, "template": flanged_tube.ID, "export_formats": ["step"], "checks": {}},
    ]
    assert len({fingerprint(ENGINE.read(body).work) for body in bodies}) == 1
    without = [{**EXAMPLE, "fillet_radius": none} for none in (0, 0.0, -0.0, None)]
    assert len({fingerprint(ENGINE.read({"parameters": body}).work) for body in without}) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ["parameters", "template", "tree", "export_format", "export_formats", "tolerance", "checks"]
)


@given(st.dictionaries(_FIELDS, _JSON))
def test_any_json_is_read_or_refused(body: dict[str, Any]) -> None:
    reading = ENGINE.read(body)
    assert (reading.work is None) == bool(reading.problems)


@given(st.dictionaries(st.sampled_from([*EXAMPLE, *EXAMPLE["hole_pattern"]]), _JSON, max_size=3))
def test_any_change_of_the_example_is_read_or_refused(changes: dict[str, Any]) -> None:
    changes.pop("hole_pattern", None)
    reading = ENGINE.read({"parameters": changed(**changes)})
    assert (reading.work is None) == bool(reading.problems)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"export_format": "obj"}, {"/export_format"}),
        ({"export_formats": []}, {"/export_formats"}),
        ({"export_formats": ["step"] * 9}, {"/export_formats"}),
        ({"export_formats": ["step", "glb", "step"]}, {"/export_formats/2"}),
        ({"export_formats": ["step"], "export_format": "step"}, {"/export_formats"}),
        ({"template": "cube@1"}, {"/template"}),
        ({"tree": {"id": 1}}, {"/tree"}),
        ({"tolerance": {"linear": 0, "angular": 91}}, {"/tolerance/linear", "/tolerance/angular"}),
        ({"tolerance": {"x": 1}}, {"/tolerance/x"}),
        ({"checks": {"volume_min": 2, "volume_max": 1}}, {"/checks/volume_max"}),
        ({"checks": {"bounding_box": [[0, 0, 0], [1, 1]]}}, {"/checks/bounding_box/1"}),
        ({"checks": {"bounding_box": [[0, 0, 1], [1, 1, 0]]}}, {"/checks/bounding_box"}),
        ({"checks": {"solids": 0, "watertight": "yes"}}, {"/checks/solids", "/checks/watertight"}),
    ],
)  # fmt: skip
def test_everything_around_the_parameters_is_strict_too(body: Mapping[str, Any], pointers: set[str]) -> None:
    reading = ENGINE.read({"parameters": EXAMPLE, **body})
    assert {problem.pointer for problem in reading.problems} == pointers


def test_the_published_schema_takes_the_example_and_refuses_what_the_fields_refuse() -> None:
    schema = flanged_tube.describe(DEFAULT_LIMITS)["schema"]
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    validator.validate(flanged_tube.describe(DEFAULT_LIMITS)["example"])
    for broken in (changed(length=0), changed(count=2000), changed(length="3"), changed(colour=1)):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(broken)


def test_the_closed_form_is_the_contracts() -> None:
    work = ENGINE.read({"parameters": EXAMPLE}).work
    assert work is not None
    reference = Tube.of(work["parameters"]).reference
    assert reference.method == "closed-form"
    assert reference.volume == pytest.approx(2801746.16196747, rel=1e-14)


@pytest.mark.parametrize(("pitch_radius", "meets"), [(30.0, False), (38.0, True), (45.0, True), (54.0, True)])
def test_the_reference_agrees_with_a_sum_over_slices(pitch_radius: float, meets: object) -> None:
    """An independent way: the area of each z-slice, integrated by Simpson's rule over the fillets."""
    tube = Tube(60.25, 22.5, 300.0, 20.0, 6, pitch_radius, 5.0)
    assert tube.holes_meet_fillet is meets
    sliced = _sliced_volume(tube, 4000)
    assert tube.reference.volume == pytest.approx(sliced, rel=2e-9)


def _sliced_volume(tube: Tube, count: int) -> float:
    """Middle part by its area, both fillets by slices whose spacing is finest where the rim is steep."""
    straight = _slice_area(tube, tube.outer_radius) * (tube.length - 2 * tube.fillet_radius)
    f, rounded = tube.fillet_radius, 0.0
    step = math.pi / 2 / count
    for number in range(count + 1):
        angle = number * step
        weight = 1 if number in {0, count} else 4 if number % 2 else 2
        radius = tube.outer_radius - f + f * math.cos(angle)
        rounded += weight * _slice_area(tube, radius) * f * math.cos(angle)  # dz = f cos(angle) d(angle)
    return straight + 2 * rounded * step / 3


def _slice_area(tube: Tube, radius: float) -> float:
    """The ring up to `radius`, less the part of each hole that lies within it."""
    ring = math.pi * (radius**2 - tube.inner_radius**2)
    return ring - tube.hole_count * _lens(radius, tube.hole_radius, tube.pitch_radius)


def _lens(r1: float, r2: float, apart: float) -> float:
    """Area that two circles share."""
    if apart + r2 <= r1:
        return math.pi * r2**2
    if apart >= r1 + r2:
        return 0.0
    a1 = math.acos((apart**2 + r1**2 - r2**2) / (2 * apart * r1))
    a2 = math.acos((apart**2 + r2**2 - r1**2) / (2 * apart * r2))
    return r1**2 * (a1 - math.sin(2 * a1) / 2) + r2**2 * (a2 - math.sin(2 * a2) / 2)
