"""`GET /v1/limits` and the door agree, whatever the operator has set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.limits import DEFAULT_LIMITS, Limits
from tempa.engines.solid.about import OpencascadeBrep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.api.conftest import World

ROUTE = "/v1/models/generate"
TUBE = {"outer_diameter": 80.0, "inner_diameter": 45.0, "length": 90.0}
CHANGED = Limits(
    length_min=0.5,
    length_max=100,
    holes_max=3,
    export_formats_max=2,
    deadline_seconds_max=60,
    url_length_max=80,
    page_max=7,
    wait_seconds_max=2,
)


def _length(value: float) -> dict[str, Any]:
    return {"parameters": {**TUBE, "length": value}}


def _holes(count: int) -> dict[str, Any]:
    holes = {"count": count, "pitch_diameter": 62.0, "hole_diameter": 1.0}
    return {"parameters": {**TUBE, "hole_pattern": holes}}


def _url(length: int) -> dict[str, Any]:
    return {"parameters": TUBE, "webhook_url": "https://example.com/".ljust(length, "a")}


def _formats(count: int) -> dict[str, Any]:
    return {"parameters": TUBE, "export_formats": ["step", "stl", "glb"][:count]}


def _deadline(seconds: int) -> dict[str, Any]:
    return {"parameters": TUBE, "deadline_seconds": seconds}


@pytest.mark.parametrize(
    ("name", "body", "step"),
    [
        ("length_min", _length, -0.1),
        ("length_max", _length, 0.1),
        ("holes_max", _holes, 1),
        ("export_formats_max", _formats, 1),
        ("deadline_seconds_max", _deadline, 1),
        ("url_length_max", _url, 1),
    ],
)
async def test_what_is_shown_is_taken_and_just_beyond_it_is_refused(
    make_world: Callable[..., World], name: str, body: Callable[[Any], dict[str, Any]], step: float
) -> None:
    world = make_world(limits=CHANGED, engines={"opencascade-brep": OpencascadeBrep()})
    async with world.client() as http:
        shown = (await http.get("/v1/limits")).json()[name]
        taken = await http.post(ROUTE, json=body(shown))
        refused = await http.post(ROUTE, json=body(shown + step))
    assert shown != getattr(DEFAULT_LIMITS, name)
    assert (taken.status_code, refused.status_code) == (202, 422)
    assert refused.json()["errors"][0]["limit"] == shown


@pytest.mark.parametrize(
    ("name", "path"), [("page_max", "/v1/jobs?limit={}"), ("wait_seconds_max", "/v1/events?wait={}")]
)
async def test_queries_are_held_to_what_is_shown(
    make_world: Callable[..., World], name: str, path: str
) -> None:
    world = make_world(limits=CHANGED)
    async with world.client() as http:
        shown = (await http.get("/v1/limits")).json()[name]
        refused = await http.get(path.format(shown + 1))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["limit"] == shown == getattr(CHANGED, name)


async def test_templates_show_the_limits_in_force(make_world: Callable[..., World]) -> None:
    world = make_world(limits=CHANGED, engines={"opencascade-brep": OpencascadeBrep()})
    async with world.client() as http:
        limits = (await http.get("/v1/limits")).json()
        schema = (await http.get("/v1/templates/flanged-tube@1")).json()["schema"]
    length, count = schema["properties"]["length"], schema["$defs"]["HolePattern"]["properties"]["count"]
    assert (length["minimum"], length["maximum"]) == (limits["length_min"], limits["length_max"])
    assert count["maximum"] == limits["holes_max"]
