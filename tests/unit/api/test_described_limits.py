"""The document and the door agree, at both sides of every bound: an independent reader checks the one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tempa.core.limits import Limits
from tempa.engines.solid.about import OpencascadeBrep
from tempa.jobs.wire import WEBHOOK_EVENTS
from tests.unit.api.conftest import World

if TYPE_CHECKING:
    from collections.abc import Callable

ROUTE = "/v1/models/generate"
TUBE = {"outer_diameter": 80.0, "inner_diameter": 45.0, "length": 90.0}
HOLES = {"count": 3, "pitch_diameter": 62.0, "hole_diameter": 1.0}
HOOK = "https://example.com/"
BIG = 1e19


def part(**changes: Any) -> dict[str, Any]:
    return {"parameters": {**TUBE, **changes}}


def holes(**changes: Any) -> dict[str, Any]:
    return part(hole_pattern={**HOLES, **changes})


def asked(**options: Any) -> dict[str, Any]:
    return {"parameters": TUBE, **options}


def hooked(**options: Any) -> dict[str, Any]:
    return asked(webhook_url=HOOK, **options)


TAKEN: dict[str, dict[str, Any]] = {
    "least length": part(length=1e-3),
    "greatest length": part(length=1e6),
    "no fillet": part(fillet_radius=0),
    "holes": holes(count=194),
    "template": asked(template="flanged-tube@1"),
    "engine": asked(engine="opencascade-brep"),
    "formats": asked(export_formats=["step", "brep", "stl", "glb", "3mf"]),
    "format": asked(export_format="glb"),
    "least tolerance": asked(tolerance={"linear": 1e-3, "angular": 1}),
    "greatest tolerance": asked(tolerance={"linear": 1000, "angular": 90.0}),
    "no tolerance": asked(tolerance={}),
    "least checks": asked(checks={"solids": 1, "volume_min": 0, "volume_max": 0.0, "watertight": False}),
    "greatest checks": asked(checks={"solids": 1_000_000, "volume_max": BIG}),
    "box": asked(checks={"bounding_box": [[-BIG, 0, 0], [BIG, 1, 1.5]]}),
    "priorities": asked(priority=9.0),
    "deadline": asked(deadline_seconds=604_800),
    "long url": asked(webhook_url=HOOK.ljust(2048, "a")),
    "all events": hooked(webhook_events=[*WEBHOOK_EVENTS]),
    "tags": asked(tags={f"{n:064}": "v" * 256 for n in range(32)}),
    "short tag": asked(tags={"n": ""}),
    "cache": asked(cache="bypass"),
    "nulls": asked(tolerance=None, checks=None, export_format=None, webhook_events=None, template=None),
}
REFUSED: dict[str, dict[str, Any]] = {
    "shorter": part(length=0.999e-3),
    "longer": part(length=1.0001e6),
    "negative fillet": part(fillet_radius=-1e-9),
    "unknown parameter": part(width=1.0),
    "text for a number": part(length="90"),
    "no holes": holes(count=0),
    "more holes": holes(count=1025, hole_diameter=1e-3),
    "half a hole": holes(count=1.5),
    "thinner hole": holes(hole_diameter=0.9e-3),
    "template": asked(template="flanged-tube@2"),
    "engine": asked(engine="occt"),
    "no formats": asked(export_formats=[]),
    "unknown formats": asked(export_formats=["step", "dxf"]),
    "format twice": asked(export_formats=["step", "step"]),
    "unknown format": asked(export_format="dxf"),
    "finer": asked(tolerance={"linear": 0.9e-3}),
    "coarser": asked(tolerance={"linear": 1001}),
    "lesser angle": asked(tolerance={"angular": 0.999}),
    "greater angle": asked(tolerance={"angular": 90.1}),
    "unknown tolerance": asked(tolerance={"relative": 0.1}),
    "no solids": asked(checks={"solids": 0}),
    "more solids": asked(checks={"solids": 1_000_001}),
    "negative volume": asked(checks={"volume_min": -1e-9}),
    "greater volume": asked(checks={"volume_max": 1.1 * BIG}),
    "one corner": asked(checks={"bounding_box": [[0, 0, 0]]}),
    "three corners": asked(checks={"bounding_box": [[0, 0, 0]] * 3}),
    "flat corners": asked(checks={"bounding_box": [[0, 0], [1, 1]]}),
    "far corner": asked(checks={"bounding_box": [[0, 0, 0], [1, 1, 1.1 * BIG]]}),
    "box of text": asked(checks={"bounding_box": "small"}),
    "watertight": asked(checks={"watertight": 1}),
    "priority": asked(priority=10),
    "negative priority": asked(priority=-1),
    "no time": asked(deadline_seconds=0),
    "too much time": asked(deadline_seconds=604_800.5),
    "longer url": asked(webhook_url=HOOK.ljust(2049, "a")),
    "more events": hooked(webhook_events=[*WEBHOOK_EVENTS, "job.completed"]),
    "no events": hooked(webhook_events=[]),
    "event twice": hooked(webhook_events=["job.completed", "job.completed"]),
    "unknown event": hooked(webhook_events=["job.done"]),
    "more tags": asked(tags={str(n): "" for n in range(33)}),
    "nameless tag": asked(tags={"": "v"}),
    "longer name": asked(tags={"n" * 65: "v"}),
    "longer value": asked(tags={"n": "v" * 257}),
    "control in a name": asked(tags={"a\x01b": "v"}),
    "control in a value": asked(tags={"n": "a\tb"}),
    "number as a tag": asked(tags={"n": 1}),
    "long instance": asked(gpu_instance_id="g" * 65),
    "cache": asked(cache="no"),
    "unknown": asked(color="red"),
}


@pytest.fixture
def solid(make_world: Callable[..., World]) -> World:
    return make_world(engines={"opencascade-brep": OpencascadeBrep()}, limits=Limits())


async def validator(world: World) -> jsonschema.Draft202012Validator:
    async with world.client() as http:
        document = (await http.get("/openapi.json")).json()
    schema = {**document["components"]["schemas"]["GenerateModel"], "components": document["components"]}
    return jsonschema.Draft202012Validator(schema)


async def test_what_the_document_allows_is_taken(solid: World) -> None:
    described = await validator(solid)
    async with solid.client() as http:
        for name, body in TAKEN.items():
            answer = await http.post(ROUTE, json=body)
            assert (described.is_valid(body), answer.is_success) == (True, True), (name, answer.text)


async def test_what_is_refused_breaks_the_document_too(solid: World) -> None:
    described = await validator(solid)
    async with solid.client() as http:
        for name, body in REFUSED.items():
            answer = await http.post(ROUTE, json=body)
            assert (described.is_valid(body), answer.status_code) == (False, 422), (name, answer.text)


async def test_the_document_shows_the_limits_in_force(make_world: Callable[..., World]) -> None:
    limits = Limits(
        length_max=100,
        holes_max=3,
        export_formats_max=2,
        deadline_seconds_max=60,
        url_length_max=80,
        tags_max=1,
        tag_name_length_max=2,
        tag_value_length_max=3,
        page_max=7,
        wait_seconds_max=2,
    )
    world = make_world(engines={"opencascade-brep": OpencascadeBrep()}, limits=limits)
    within = [
        asked(export_formats=["step", "stl"], deadline_seconds=60, tags={"ab": "abc"}),
        {**holes(), "webhook_url": HOOK.ljust(80, "a")},
    ]
    beyond = [
        part(length=100.1),
        holes(count=4),
        asked(export_formats=["step", "stl", "glb"]),
        asked(deadline_seconds=61),
        asked(webhook_url=HOOK.ljust(81, "a")),
        asked(tags={"a": "", "b": ""}),
        asked(tags={"abc": ""}),
        asked(tags={"a": "abcd"}),
    ]
    described = await validator(world)
    async with world.client() as http:
        for bodies, expected in ((within, (True, 202)), (beyond, (False, 422))):
            for body in bodies:
                answer = await http.post(ROUTE, json=body)
                assert (described.is_valid(body), answer.status_code) == expected, body


async def test_queries_are_described_with_their_limits(make_world: Callable[..., World]) -> None:
    world = make_world(limits=Limits(page_max=7, wait_seconds_max=2))
    async with world.client() as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
        for path, name, most in (
            ("/v1/jobs", "limit", 7),
            ("/v1/events", "limit", 7),
            ("/v1/events", "wait", 2),
            ("/v1/webhooks/deliveries", "limit", 7),
        ):
            found = next(one for one in paths[path]["get"]["parameters"] if one["name"] == name)
            assert found["schema"]["maximum"] == most
            assert (await http.get(f"{path}?{name}={most + 1}")).status_code == 422
    another = make_world(limits=Limits())
    async with another.client() as http:  # what one app says is not said by the next
        parameters = (await http.get("/openapi.json")).json()["paths"]["/v1/jobs"]["get"]["parameters"]
    assert next(one for one in parameters if one["name"] == "limit")["schema"]["maximum"] == 200
