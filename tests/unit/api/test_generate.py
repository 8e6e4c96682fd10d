"""POST /v1/models/generate: a ticket, once for each request."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.api.conftest import BODY, LIMITS

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World

ROUTE = "/v1/models/generate"
JSON = {"Content-Type": "application/json"}


async def test_a_new_request_is_a_ticket(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, json=BODY)
    ticket = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{ticket['job_id']}"
    assert answer.headers["retry-after"] == "1"
    assert "idempotency-replayed" not in answer.headers
    assert ticket == {
        "job_id": ticket["job_id"],
        "status": "queued",
        "created_at": "2026-11-30T12:00:00.000Z",
    }
    assert ticket["job_id"] in world.jobs.rows


async def test_the_same_request_is_the_same_job_with_its_present_status(
    world: World, http: httpx2.AsyncClient
) -> None:
    first = (await http.post(ROUTE, json=BODY)).json()
    world.jobs.tell(first["job_id"], "job.started")
    again = await http.post(ROUTE, content=b'{"parameters": {"length": 3.0e2}}', headers=JSON)
    assert again.status_code == 200
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == f"/v1/jobs/{first['job_id']}"
    assert again.json() == {**first, "status": "processing"}
    assert len(world.jobs.rows) == 1


async def test_a_key_stands_for_one_request_however_it_is_quoted(http: httpx2.AsyncClient) -> None:
    first = await http.post(ROUTE, json=BODY, headers={"Idempotency-Key": "a-1"})
    quoted = await http.post(ROUTE, json=BODY, headers={"Idempotency-Key": '"a-1"'})
    other = await http.post(ROUTE, json={"parameters": {"length": 7}}, headers={"Idempotency-Key": "a-1"})
    assert (first.status_code, quoted.status_code) == (202, 200)
    assert first.json()["job_id"] == quoted.json()["job_id"]
    assert other.status_code == 422
    assert other.json()["type"] == "urn:tempa:problem:idempotency-key-reused"


@pytest.mark.parametrize("keys", [["a", "b"], ["a", "a"], [""], ['""'], ["k" * 256], ["ä"], ["a\tb"]])
async def test_a_key_that_is_none_is_refused(world: World, keys: list[str]) -> None:
    headers = [(b"authorization", f"Bearer {world.secret}".encode()), (b"content-type", b"application/json")]
    headers += [(b"idempotency-key", key.encode("latin-1")) for key in keys]
    async with world.bare_client() as http:
        answer = await http.post(ROUTE, json=BODY, headers=headers)
    assert answer.status_code == 422
    assert "Idempotency-Key" in answer.json()["errors"][0]["message"]
    assert world.jobs.rows == {}


async def test_two_at_once_are_one_job(world: World, http: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(http.post(ROUTE, json=BODY) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1


UNREADABLE = {
    "syntax": b'{"parameters": {',
    "duplicate": b'{"parameters": {"length": 1, "length": 2}}',
    "nan": b'{"parameters": {"length": NaN}}',
    "infinity": b'{"parameters": {"length": -Infinity}}',
    "utf-8": b'{"parameters": {"name": "\xff"}}',
    "surrogate": b'{"parameters": {"name": "\\ud800"}}',
    "depth": b"[" * 1000,
    "empty": b"",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_a_body_that_is_no_json_is_400(world: World, http: httpx2.AsyncClient, body: bytes) -> None:
    answer = await http.post(ROUTE, content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:tempa:problem:unreadable-json"
    assert answer.json()["code"] == "UNREADABLE_JSON"
    assert world.jobs.rows == {}


@pytest.mark.parametrize(
    "body",
    [
        b'{"parameters": {"length": 1e999}}',
        b'{"parameters": {"length": "300"}}',
        b"[]",
        b"null",
        b'{"priority": "5", "parameters": {"length": 1}}',
    ],
)
async def test_json_that_is_no_request_is_422(http: httpx2.AsyncClient, body: bytes) -> None:
    answer = await http.post(ROUTE, content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:tempa:problem:invalid-request"


async def test_all_faults_are_told_at_once(http: httpx2.AsyncClient) -> None:
    body: dict[str, Any] = {
        "parameters": {"length": -1},
        "priority": 10,
        "nonsense": 1,
        "webhook_events": ["x"],
    }
    answer = await http.post(ROUTE, json=body)
    faults = answer.json()["errors"]
    assert {fault["pointer"] for fault in faults} == {
        "/parameters/length",
        "/priority",
        "/nonsense",
        "/webhook_events/0",
        "/webhook_events",
    }
    assert next(fault for fault in faults if fault["pointer"] == "/priority")["limit"] == 9


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({**BODY, "engine": "no-such"}, "engine-unavailable"),
        ({**BODY, "webhook_url": "https://10.0.0.1/hook"}, "address-not-allowed"),
    ],
)
async def test_what_cannot_run_here_says_so(
    http: httpx2.AsyncClient, body: dict[str, Any], slug: str
) -> None:
    answer = await http.post(ROUTE, json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:tempa:problem:{slug}")


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json; charset=utf-8",
        'Application/JSON;charset="UTF-8"',
        "application/json; profile=x; charset=utf8",
    ],
)
async def test_json_may_be_called_so_in_many_ways(http: httpx2.AsyncClient, media_type: str) -> None:
    answer = await http.post(ROUTE, content=json.dumps(BODY), headers={"Content-Type": media_type})
    assert answer.status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonl"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
async def test_anything_but_json_is_415(http: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    answer = await http.post(ROUTE, content=json.dumps(BODY).encode(), headers=headers)
    assert answer.status_code == 415
    assert answer.json()["type"] == "urn:tempa:problem:unsupported-media-type"


async def test_an_announced_body_over_the_limit_is_refused_unread(world: World) -> None:
    headers = {**JSON, "Content-Length": str(LIMITS.json_body_bytes + 1)}
    async with world.exchange("POST", ROUTE, headers, body=None) as exchange:
        assert await exchange.started() == 413
        assert exchange.taken == 0
        assert json.loads(exchange.body)["errors"][0]["limit"] == LIMITS.json_body_bytes


async def test_a_streamed_body_is_refused_as_soon_as_it_passes_the_limit(world: World) -> None:
    async with world.exchange("POST", ROUTE, JSON, body=None) as exchange:
        for _ in range(5):
            exchange.send_body(b" " * (LIMITS.json_body_bytes // 2), more=True)
        assert await exchange.started() == 413
        assert exchange.taken == 3
    assert world.jobs.rows == {}


async def test_a_body_at_the_limit_is_read(http: httpx2.AsyncClient) -> None:
    body = json.dumps(BODY).encode().ljust(LIMITS.json_body_bytes)
    assert (await http.post(ROUTE, content=body, headers=JSON)).status_code == 202


async def test_the_key_is_checked_before_the_body_is_read(world: World) -> None:
    headers = {"Authorization": "Bearer nonsense", "Content-Type": "text/plain", "Content-Length": "99999999"}
    async with world.exchange("POST", ROUTE, headers, body=None) as exchange:
        assert await exchange.started() == 401
        assert exchange.taken == 0


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(world: World) -> None:
    async with world.exchange("POST", ROUTE, JSON, body=None) as exchange:
        exchange.send_body(b'{"parameters"', more=True)
    assert world.jobs.rows == {}
