"""What only real sockets and a real store show: leaving clients, stopping servers, bytes on the wire."""

from __future__ import annotations

import asyncio
import hashlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tests.integration.api.conftest import SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from tests.integration.api.conftest import Served

ROUTE = "/v1/models/generate"


def a_body(n: int = 0, **options: Any) -> dict[str, Any]:
    return {"parameters": {"do": "finish", "n": n}, **options}


async def test_twenty_at_once_are_one_job(http: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(http.post(ROUTE, json=a_body()) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1


async def test_the_way_of_a_ticket(served: Served, http: httpx2.AsyncClient) -> None:
    content = os.urandom(700_000)
    ticket = (await http.post(ROUTE, json=a_body())).json()
    path = f"/v1/jobs/{ticket['job_id']}"
    queued = await http.get(path)
    held = asyncio.create_task(http.get(f"{path}?wait=30", headers={"If-None-Match": queued.headers["etag"]}))
    job = await served.claim()
    processing = await held
    assert processing.json()["status"] == "processing"
    held = asyncio.create_task(
        http.get(f"{path}?wait=30", headers={"If-None-Match": processing.headers["etag"]})
    )
    await served.complete(job, content)
    completed = (await held).json()
    (artifact,) = completed["result"]["artifacts"]
    assert artifact["sha256"] == hashlib.sha256(content).hexdigest()
    whole = await http.get(artifact["download_url"])
    part = await http.get(artifact["download_url"], headers={"Range": "bytes=600000-"})
    head = await http.head(artifact["download_url"])
    assert (whole.content, part.content, head.content) == (content, content[600_000:], b"")
    assert whole.headers["etag"] == head.headers["etag"] == f'"{artifact["sha256"]}"'
    assert head.headers["content-length"] == "700000"


async def test_events_are_streamed_as_they_are_written(served: Served, http: httpx2.AsyncClient) -> None:
    job_id = (await http.post(ROUTE, json=a_body())).json()["job_id"]
    async with asyncio.timeout(SECONDS), http.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
        lines = stream.aiter_lines()
        seen = [await next_event(lines)]
        job = await served.claim()
        seen.append(await next_event(lines))
        await served.fail(job, "KERNEL_TIMEOUT")
        seen.append(await next_event(lines))
        assert [line async for line in lines if line] == []
    assert seen == [("job.queued", "1"), ("job.started", "2"), ("job.failed", "3")]
    async with http.stream("GET", f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "2"}) as stream:
        assert await next_event(stream.aiter_lines()) == ("job.failed", "3")


async def next_event(lines: AsyncIterator[str]) -> tuple[str, str]:
    fields: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line and "id" in fields:
            return fields["event"], fields["id"]
        if not line:
            fields.clear()
    raise AssertionError("the stream has ended")


async def test_a_client_that_leaves_frees_its_seat(served: Served, http: httpx2.AsyncClient) -> None:
    job_id = (await http.post(ROUTE, json=a_body())).json()["job_id"]
    freed = asyncio.Event()
    seats = watch_seats(served, freed)
    async with http.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
        await next_event(stream.aiter_lines())
        assert seats.free == served.parts.limits.streams_max - 1
    async with asyncio.timeout(SECONDS):
        await freed.wait()


def watch_seats(served: Served, freed: asyncio.Event) -> Any:
    """Seats that tell when all of them are free again."""

    class Watched:
        def __init__(self) -> None:
            self.free = served.parts.limits.streams_max

        def __setattr__(self, name: str, value: int) -> None:
            before = self.__dict__.get(name, value)
            self.__dict__[name] = value
            if value > before:
                freed.set()

        taken = type(served.app.state.seats).taken

    served.app.state.seats = Watched()
    return served.app.state.seats


async def test_a_server_that_stops_lets_waiting_clients_go(served: Served, http: httpx2.AsyncClient) -> None:
    job_id = (await http.post(ROUTE, json=a_body())).json()["job_id"]
    held = asyncio.create_task(http.get(f"/v1/jobs/{job_id}?wait=30"))
    async with http.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
        lines = stream.aiter_lines()
        await next_event(lines)
        await served.stop()
        assert [line async for line in lines if line] == []
    assert (await held).status_code == 200


async def test_an_upload_over_the_limit_is_refused_while_the_client_still_sends(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: tempa.test\r\nAuthorization: Bearer {served.secret}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"40000\r\n" + bytes(0x40000) + b"\r\n"
    async with asyncio.timeout(SECONDS):
        writer.write(head.encode() + piece * 5)  # 1.25 MiB of 1 MiB, and no end
        await writer.drain()
        status_line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status_line.split()[1] == b"413"
    assert not [path for path in served.artifacts.root.rglob("*") if path.is_file()]


async def test_a_connection_is_used_again_after_a_refusal(http: httpx2.AsyncClient) -> None:
    for _ in range(3):
        too_large = await http.post("/v1/files", content=bytes((1 << 20) + 1))
        assert too_large.status_code == 413
        assert (await http.get("/v1/limits")).status_code == 200


async def test_lists_are_filtered_by_the_store(served: Served, http: httpx2.AsyncClient) -> None:
    start = served.parts.clock.now()
    ids = [
        (await http.post(ROUTE, json=a_body(n, tags={"part": f"p{n % 2}"}))).json()["job_id"]
        for n in range(4)
    ]
    await served.fail(await served.claim(), "KERNEL_TIMEOUT")
    expected = {
        "": ids[::-1],
        "tag=part:p1": [ids[3], ids[1]],
        "status=queued": [ids[3], ids[2], ids[1]],
        "code=KERNEL_TIMEOUT": [ids[0]],
        "engine=opencascade-brep": ids[::-1],
        "engine=other": [],
        f"since={rfc3339(start)}": ids[::-1],
        f"since={rfc3339(start + timedelta(hours=1))}": [],
    }
    for query, wanted in expected.items():
        found = (await http.get(f"/v1/jobs?{query}")).json()["items"]
        assert [job["job_id"] for job in found] == wanted, query
    first = (await http.get("/v1/jobs?limit=3")).json()
    rest = (await http.get(f"/v1/jobs?limit=3&cursor={first['next_cursor']}")).json()
    assert [job["job_id"] for job in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None


async def test_uploads_keys_and_scaling_reach_the_store(served: Served, http: httpx2.AsyncClient) -> None:
    uploaded = (await http.post("/v1/files", files={"file": b"solid"})).json()
    stored = await served.store.file("default", uploaded["file_id"])
    assert stored is not None
    assert stored.sha256 == hashlib.sha256(b"solid").hexdigest() == uploaded["sha256"]
    made = (await http.post("/v1/keys", json={"name": "CI", "scopes": ["jobs:read"]})).json()
    assert (await http.delete(f"/v1/keys/{made['id']}")).status_code == 204
    revoked = await http.get("/v1/limits", headers={"Authorization": f"Bearer {made['api_key']}"})
    assert revoked.json()["code"] == "REVOKED_KEY"
    await http.post(ROUTE, json=a_body())
    load = (await http.get("/v1/scaling/cpu")).json()
    assert (load["queued"], load["running"]) == (1, 0)
    assert 0 <= load["oldest_age_seconds"] < SECONDS
