"""Webhooks as a stream, over real HTTP: what would be sent, signed, each once, resumable."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from standardwebhooks import Webhook

from tempa.core.signing import hex_signature
from tempa.webhooks.fanout import FanOut
from tempa.webhooks.verifier import verify
from tests.integration.api.conftest import SECONDS, SECRET

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.api.conftest import Served

PATH = "/v1/webhooks/stream"
JOB = {"engine": "trial", "parameters": {"do": "finish"}, "cache": "bypass"}


class Reader:
    """The messages of one open stream."""

    def __init__(self, response: httpx2.Response) -> None:
        self._messages = aiter(httpx2.EventSource(response))

    async def next(self) -> httpx2.ServerSentEvent:
        return await anext(self._messages)


@asynccontextmanager
async def streaming(
    http: httpx2.AsyncClient, params: dict[str, str] | None = None, after: str | None = None
) -> AsyncIterator[Reader]:
    headers = {} if after is None else {"Last-Event-ID": after}
    async with http.stream("GET", PATH, params=params, headers=headers, timeout=SECONDS) as response:
        assert response.status_code == 200
        yield Reader(response)


async def a_failed_job(served: Served, http: httpx2.AsyncClient) -> str:
    """A job that failed, in the feed."""
    answer = await http.post("/v1/models/generate", json=JOB)
    assert answer.status_code == 202, answer.text
    await served.fail(await served.claim(), "FILLET_FAILED")
    await FanOut(store=served.store, wake=served.parts.wake).drain()
    job_id: str = answer.json()["job_id"]
    return job_id


def sent(message: httpx2.ServerSentEvent) -> tuple[dict[str, str], bytes, dict[str, Any]]:
    assert message.event == "webhook"
    data = json.loads(message.data)
    body = data["body"].encode()
    return data["headers"], body, json.loads(body)


async def test_what_comes_is_what_would_be_sent(served: Served, http: httpx2.AsyncClient) -> None:
    await a_failed_job(served, http)  # before the stream: not in it
    async with streaming(http) as stream:
        assert (await stream.next()).event == "ready"
        job_id = await a_failed_job(served, http)
        headers, body, event = sent(await stream.next())

    assert (event["type"], event["data"]["job_id"]) == ("cad_generation.failed", job_id)
    Webhook(SECRET).verify(body, headers)
    assert verify(body, headers, SECRET)["id"] == headers["webhook-id"]
    assert headers["X-Webhook-Signature"] == hex_signature(SECRET, body)
    assert headers["User-Agent"] == "Tempa/0.0.0"


async def test_a_reader_that_comes_back_misses_nothing(served: Served, http: httpx2.AsyncClient) -> None:
    async with streaming(http) as stream:
        start = (await stream.next()).id
    jobs = [await a_failed_job(served, http) for _ in range(3)]

    async with streaming(http, after=start) as stream:
        assert (await stream.next()).id == start
        first = await stream.next()
    async with streaming(http, after=first.id) as stream:
        await stream.next()
        rest = [await stream.next() for _ in range(2)]

    assert [sent(message)[2]["data"]["job_id"] for message in (first, *rest)] == jobs


async def test_only_what_is_asked_for_comes(served: Served, http: httpx2.AsyncClient) -> None:
    async with streaming(http, {"events": "job.started,job.completed"}, after="0") as stream:
        await stream.next()
        await a_failed_job(served, http)
        await http.post("/v1/models/generate", json=JOB)
        await served.claim()
        await FanOut(store=served.store, wake=served.parts.wake).drain()
        types = [sent(await stream.next())[2]["type"] for _ in range(2)]
    assert types == ["cad_generation.started", "cad_generation.started"]


@pytest.mark.parametrize(
    ("params", "headers"),
    [({"events": "job.exploded"}, {}), ({"event": "job.failed"}, {}), ({}, {"Last-Event-ID": "x"})],
)
async def test_what_cannot_be_streamed_is_refused(
    http: httpx2.AsyncClient, params: dict[str, str], headers: dict[str, str]
) -> None:
    answer = await http.get(PATH, params=params, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")


async def test_head_asks_for_no_stream(http: httpx2.AsyncClient) -> None:
    answer = await http.head(PATH)
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (
        200,
        "text/event-stream",
    )


async def test_a_position_that_was_never_given_is_refused(served: Served, http: httpx2.AsyncClient) -> None:
    await a_failed_job(served, http)
    last = await served.store.last_position()
    async with streaming(http, after=str(last)) as stream:
        assert (await stream.next()).id == str(last)

    answer = await http.get(PATH, headers={"Last-Event-ID": str(last + 1)})

    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")
    assert f"has come to {last}" in answer.json()["detail"]
