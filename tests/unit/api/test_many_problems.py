"""However much is wrong with a request, the answer is short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.limits import Limits
from tempa.jobs.wire import WEBHOOK_EVENTS
from tests.unit.api.conftest import BODY, World

if TYPE_CHECKING:
    from collections.abc import Callable

ROUTE = "/v1/models/generate"
HOOK = {"webhook_url": "https://example.com/"}
MANY = 9_000


@pytest.fixture
def roomy(make_world: Callable[..., World]) -> World:
    """With the limit on bodies that is the default."""
    return make_world(limits=Limits())


HUGE: dict[str, dict[str, Any]] = {
    "events": {**BODY, **HOOK, "webhook_events": ["x"] * MANY},
    "known events": {**BODY, **HOOK, "webhook_events": ["job.completed"] * MANY},
    "fields": {**BODY, **{f"f{n}": n for n in range(MANY)}},
    "tags": {**BODY, "tags": {f"{n}\x01": "v" for n in range(MANY)}},
    "tag values": {**BODY, "tags": {str(n): n for n in range(MANY)}},
    "a long name": {**BODY, "f" * 900_000: 1},
    "a long event": {**BODY, **HOOK, "webhook_events": ["e" * 900_000] * 1},
    "a long engine": {**BODY, "engine": "e" * 900_000},
    "a long tag": {**BODY, "tags": {"t" * 900_000: "v"}},
}


@pytest.mark.parametrize("body", HUGE.values(), ids=HUGE.keys())
async def test_a_request_wrong_in_many_places_is_answered_in_short(
    roomy: World, body: dict[str, Any]
) -> None:
    async with roomy.client() as http:
        answer = await http.post(ROUTE, json=body)
    problem = answer.json()
    assert answer.status_code == 422
    assert len(answer.content) < 64 * 1024
    assert 1 <= len(problem["errors"]) <= 100
    assert all(len(one["pointer"]) <= 256 for one in problem["errors"])
    assert roomy.jobs.rows == {}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**BODY, **HOOK, "webhook_events": ["x"] * 10_001}, "/webhook_events"),
        ({**BODY, "tags": {str(n): "" for n in range(10_001)}}, "/tags"),
        ({str(n): 1 for n in range(10_001)}, ""),
        ({"parameters": {"a/b": [[1] * 10_001]}}, "/parameters/a~1b/0"),
    ],
)
async def test_lists_and_objects_beyond_all_measure_are_refused_unlooked_at(
    roomy: World, body: dict[str, Any], pointer: str
) -> None:
    async with roomy.client() as http:
        answer = await http.post(ROUTE, json=body)
    (problem,) = answer.json()["errors"]
    assert answer.status_code == 422
    assert problem == {"pointer": pointer, "message": "At most 10000 entries.", "limit": 10_000}


async def test_many_commas_alone_are_no_fault(roomy: World) -> None:
    body = {**BODY, "tags": {str(n): "," * 256 for n in range(32)}, "parameters": {"length": 1, "x": ","}}
    text = json.dumps(body).ljust(900_000).encode()
    lists = json.dumps({**body, "a": [[1] * 5000] * 3}).encode()
    headers = {"Content-Type": "application/json"}
    async with roomy.client() as http:
        assert (await http.post(ROUTE, content=text, headers=headers)).status_code == 202
        problems = (await http.post(ROUTE, content=lists, headers=headers)).json()["errors"]
    assert [one["pointer"] for one in problems] == ["/a"]  # unknown, and that is all


@pytest.mark.parametrize(("wrong", "listed", "beyond"), [(99, 99, None), (100, 100, None), (101, 100, 1)])
async def test_a_hundred_are_listed_and_the_rest_is_counted(
    roomy: World, wrong: int, listed: int, beyond: int | None
) -> None:
    async with roomy.client() as http:
        answer = await http.post(ROUTE, json={**BODY, **{f"f{n}": n for n in range(wrong)}})
    problem = answer.json()
    assert [one["pointer"] for one in problem["errors"]] == [f"/f{n}" for n in range(listed)]
    assert problem.get("errors_not_listed") == beyond
    told = f"{wrong} problems were found; " + ("all are" if beyond is None else "the first 100 are")
    assert problem["detail"] == f"{told} listed."


async def test_what_is_known_is_told_once(roomy: World) -> None:
    body = {**BODY, **HOOK, "a": 1, "b": 2, "webhook_events": ["x", "y"]}
    async with roomy.client() as http:
        problem = (await http.post(ROUTE, json=body)).json()
    messages = {one["pointer"]: one["message"] for one in problem["errors"]}
    assert messages["/a"].startswith("This field is not known here. Known: ")
    assert messages["/b"] == "This field is not known here."
    assert messages["/webhook_events/0"] == "Not an event. Known: " + ", ".join(WEBHOOK_EVENTS) + "."
    assert messages["/webhook_events/1"] == "Not an event."


async def test_a_query_wrong_in_many_places_is_answered_in_short(roomy: World) -> None:
    async with roomy.client() as http:
        answer = await http.get("/v1/jobs?" + "&".join(f"f{n}=1" for n in range(5000)))
    problem = answer.json()
    assert (answer.status_code, len(problem["errors"])) == (422, 100)
    assert problem["errors_not_listed"] == 4900
    assert len(answer.content) < 16 * 1024


@pytest.mark.parametrize(
    ("events", "limit"),
    [([*WEBHOOK_EVENTS, WEBHOOK_EVENTS[0]], len(WEBHOOK_EVENTS)), (["job.failed", "job.failed"], None)],
)
async def test_an_event_is_named_once(roomy: World, events: list[str], limit: int | None) -> None:
    async with roomy.client() as http:
        answer = await http.post(ROUTE, json={**BODY, **HOOK, "webhook_events": events})
    (problem,) = answer.json()["errors"]
    assert answer.status_code == 422
    assert (problem["pointer"], problem["limit"]) == ("/webhook_events", limit)
    if limit is None:
        assert problem["message"] == "Each event once; job.failed is there twice."
