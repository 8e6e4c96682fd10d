"""Catalogue, health, and every answer that is no answer: one form for all problems."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from tempa.core.errors import PROBLEMS
from tests.unit.api.conftest import BODY, LIMITS, World
from tests.unit.api.fakes import TEMPLATE

if TYPE_CHECKING:
    import httpx2
    from starlette.types import Receive, Scope, Send


async def test_engines_name_their_templates(http: httpx2.AsyncClient) -> None:
    answer = (await http.get("/v1/engines")).json()
    assert answer == {
        "items": [{"name": "opencascade-brep", "version": "1", "templates": ["flanged-tube@1"]}],
        "next_cursor": None,
    }


@pytest.mark.parametrize("spelling", ["flanged-tube@1", "flanged-tube%401"])
async def test_templates_are_told_in_full(http: httpx2.AsyncClient, spelling: str) -> None:
    assert (await http.get("/v1/templates")).json()["items"] == [TEMPLATE]
    assert (await http.get(f"/v1/templates/{spelling}")).json() == TEMPLATE


async def test_a_template_that_is_not_there_is_404_and_tells_what_is(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/v1/templates/flanged-tube")
    assert answer.status_code == 404
    assert "flanged-tube@1" in answer.json()["detail"]


async def test_limits_are_those_in_force(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/v1/limits")).json() == json.loads(LIMITS.model_dump_json())


async def test_a_lane_tells_its_load(world: World, http: httpx2.AsyncClient) -> None:
    await world.a_job()
    world.clock.advance(12.5)
    answer = (await http.get("/v1/scaling/cpu")).json()
    assert answer == {"lane": "cpu", "queued": 3, "running": 2, "oldest_age_seconds": 12.5}
    assert (await http.get("/v1/scaling/gpu")).status_code == 404


async def test_health_and_metrics_need_no_key(world: World) -> None:
    async with world.bare_client() as http:
        assert (await http.get("/livez")).json() == {"status": "ok"}
        ready = await http.get("/readyz")
        metrics = await http.get("/metrics")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "parts": {"store": "ok"}})
    assert metrics.text == "tempa_jobs 1\n"
    assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_not_ready_is_503_and_says_which_part(world: World) -> None:
    world.readiness = {"store": "ok", "engines": "none can be loaded"}
    async with world.bare_client() as http:
        answer = await http.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "parts": world.readiness}


async def test_a_server_that_stops_is_alive_and_not_ready(world: World) -> None:
    world.parts.stopping.set()
    async with world.bare_client() as http:
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/livez")).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nonsense", "/v1/jobs/", "/docs", "/redoc", "/v1//jobs", "/V1/jobs"]
)
async def test_a_path_that_is_none_is_404(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:tempa:problem:not-found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/jobs/x", "GET, HEAD, DELETE"),
        ("POST", "/v1/jobs", "GET, HEAD"),
        ("DELETE", "/v1/keys", "GET, HEAD, POST"),
        ("GET", "/v1/models/generate", "POST"),
        ("HEAD", "/v1/models/generate", "POST"),
        ("PATCH", "/livez", "GET, HEAD"),
        ("OPTIONS", "/v1/files", "POST"),
        ("TRACE", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_served_names_all_that_are(
    http: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await http.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    if method != "HEAD":
        assert answer.json()["type"] == "urn:tempa:problem:method-not-allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/v1/jobs",
        "/v1/limits",
        "/v1/events",
        "/v1/nonsense",
    ],
)
async def test_head_is_get_without_the_body(http: httpx2.AsyncClient, path: str) -> None:
    get, head = await http.get(path), await http.head(path)
    assert head.status_code == get.status_code
    assert head.headers == get.headers
    assert head.content == b""


async def test_a_store_that_is_away_is_503(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.switch.away = True
    job_id = "cad_00000000000000000000000000"
    for answer in (await http.get(f"/v1/jobs/{job_id}"), await http.post("/v1/models/generate", json=BODY)):
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "2"
        assert answer.json()["type"] == "urn:tempa:problem:store-unavailable"


async def test_a_fault_of_ours_is_500_with_a_reference_to_the_log(
    world: World, http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret of the house")

    world.jobs.counts = broken  # type: ignore[method-assign,assignment]
    answer = await http.get("/v1/scaling/cpu?token=hidden")
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:tempa:problem:internal"
    assert "secret" not in answer.text
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.__dict__["reference"] == answer.json()["reference"]
    assert record.__dict__["path"] == "/v1/scaling/cpu"
    assert answer.json()["reference"] in answer.json()["detail"]


async def test_every_problem_has_the_same_form(world: World, http: httpx2.AsyncClient) -> None:
    async with world.bare_client() as anyone:
        answers = [
            await http.get("/nonsense"),
            await http.put("/livez"),
            await anyone.get("/v1/jobs"),
            await http.get("/v1/jobs?limit=0"),
            await http.post("/v1/models/generate", content=b"{"),
        ]
    for answer in answers:
        body = answer.json()
        slug = body["type"].removeprefix("urn:tempa:problem:")
        assert answer.headers["content-type"] == "application/problem+json"
        assert body["status"] == answer.status_code == PROBLEMS[slug].status
        assert body["title"] == PROBLEMS[slug].title
        assert body["code"] == slug.upper().replace("-", "_")
        assert body["detail"]
        assert isinstance(body["errors"], list)


async def test_browsers_of_listed_origins_may_read(make_world: Callable[..., World]) -> None:
    world = make_world(cors_origins=("https://console.example",))
    origin = {"Origin": "https://console.example"}
    preflight = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with world.bare_client() as http:
        asked = await http.options("/v1/models/generate", headers=preflight)
        answer = await http.get("/v1/jobs", headers=origin)
        stranger = await http.get("/livez", headers={"Origin": "https://evil.example"})
    assert asked.status_code == 200
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "https://console.example"
    assert "Location" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in stranger.headers


async def test_without_listed_origins_no_browser_may(world: World) -> None:
    async with world.bare_client() as http:
        answer = await http.get("/livez", headers={"Origin": "https://console.example"})
    assert "access-control-allow-origin" not in answer.headers


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


PARENT = "00f067aa0ba902b7"


def traces_in_logs(world: World) -> list[dict[str, Any]]:
    """What each look at the store, from now on, would have been logged with."""
    seen: list[dict[str, Any]] = []

    async def counts() -> dict[tuple[str, str], int]:
        seen.append(dict(structlog.contextvars.get_contextvars()))
        return {}

    world.jobs.counts = counts  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize(
    "traceparent",
    [f"00-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01-what-comes"],
)
async def test_the_callers_trace_is_bound_while_its_request_runs(
    world: World, http: httpx2.AsyncClient, traceparent: str
) -> None:
    seen = traces_in_logs(world)
    assert (await http.get("/v1/scaling/cpu", headers={"traceparent": traceparent})).status_code == 200
    assert seen == [{"trace_id": TRACE, "parent_id": PARENT}]
    assert structlog.contextvars.get_contextvars() == {}


async def test_without_a_trace_none_is_bound(world: World, http: httpx2.AsyncClient) -> None:
    seen = traces_in_logs(world)
    assert (await http.get("/v1/scaling/cpu")).status_code == 200
    assert seen == [{}]


NO_TRACES = [
    f"00-{TRACE}-{PARENT}-01-more",  # version 00 has no fifth field
    f"00-{TRACE}-{PARENT}-01-",
    f"ff-{TRACE}-{PARENT}-01",
    f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE.upper()}-{PARENT}-01",
    f"00-{TRACE}-{PARENT}-1",
    f"cc-{TRACE}-{PARENT}-01.more",
    "nonsense",
    "",
]


@pytest.mark.parametrize("traceparent", NO_TRACES)
async def test_a_traceparent_that_is_none_begins_a_new_trace(
    world: World, http: httpx2.AsyncClient, traceparent: str
) -> None:
    answer = await http.post(
        "/v1/models/generate", json={**BODY, "cache": "bypass"}, headers={"traceparent": traceparent}
    )
    carried = world.jobs.rows[answer.json()["job_id"]].request.traceparent
    assert carried is not None
    match = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-00", carried)
    assert match is not None
    assert match[1] not in {TRACE, "0" * 32}
    assert match[2] not in {PARENT, "0" * 16}


@pytest.mark.parametrize(
    ("sent", "carried"),
    [
        ([f"00-{TRACE}-{PARENT}-03"], f"00-{TRACE}-{PARENT}-03"),
        # Of a later version we know four fields and one flag, and speak 00 (Trace Context, section 4).
        ([f"cc-{TRACE}-{PARENT}-ff-more"], f"00-{TRACE}-{PARENT}-01"),
        ([f"cc-{TRACE}-{PARENT}-fe"], f"00-{TRACE}-{PARENT}-00"),
        ([], None),
    ],
)
async def test_a_job_carries_its_trace_on(
    world: World, http: httpx2.AsyncClient, sent: list[str], carried: str | None
) -> None:
    answer = await http.post(
        "/v1/models/generate", json=BODY, headers=[("traceparent", text) for text in sent]
    )
    assert world.jobs.rows[answer.json()["job_id"]].request.traceparent == carried


async def test_two_traceparents_are_none(world: World, http: httpx2.AsyncClient) -> None:
    twice = [("traceparent", f"00-{TRACE}-{PARENT}-01")] * 2
    seen = traces_in_logs(world)
    assert (await http.get("/v1/scaling/cpu", headers=twice)).status_code == 200
    assert seen[0]["trace_id"] != TRACE


async def test_an_answer_that_breaks_on_the_way_is_broken_for_the_client_too(world: World) -> None:
    """A body that merely ended would look complete."""

    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("broken")

    world.app.mount("/breaks", breaks)
    exchange = world.exchange("GET", "/breaks/down")
    with pytest.raises(RuntimeError, match="broken"):
        async with exchange:
            await exchange.done()
    assert not exchange.ended
