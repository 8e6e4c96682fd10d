"""Server-sent events: each once, in order, resumable, and over when the job is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.work import job_topic
from tests.unit.api.conftest import LIMITS

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World


def read(text: str) -> list[dict[str, Any]]:
    """Server-sent events by the rules of WHATWG HTML 9.2.6, comments left out."""
    events = []
    for block in text.split("\n\n"):
        fields: dict[str, Any] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
        if "data" in fields:
            events.append({**fields, "data": json.loads(fields["data"])})
    return events


async def test_all_events_of_a_job_that_has_ended(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    answer = await http.get(f"/v1/jobs/{job.id}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    events = read(answer.text)
    assert [(event["id"], event["event"]) for event in events] == [
        ("1", "job.queued"),
        ("2", "job.started"),
        ("3", "job.completed"),
    ]
    assert events[2]["data"] == {
        "sequence": 3,
        "type": "job.completed",
        "at": "2026-11-30T12:00:00.000Z",
        "job_id": job.id,
        "told": "job.completed",
    }


async def test_events_come_as_they_happen_and_the_stream_ends_with_the_job(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.queued")
        for event in ("job.started", "job.canceled"):
            world.jobs.tell(job.id, event)
            world.wake.ring(job_topic(job.id))
            await exchange.until(event)
        await exchange.done()
        assert exchange.ended
        assert [event["id"] for event in read(exchange.body.decode())] == ["1", "2", "3"]
    assert world.clock.monotonic() == 0.0


async def test_a_lost_ring_costs_a_second(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.queued")
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.canceled")
        world.clock.advance(0.999)
        await world.clock.until_asleep()
        assert b"job.canceled" not in exchange.body
        world.clock.advance(0.001)
        await exchange.done()
        assert [event["id"] for event in read(exchange.body.decode())] == ["1", "2"]


async def test_a_stream_resumes_after_the_last_event_seen(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    answer = await http.get(f"/v1/jobs/{job.id}/events", headers={"Last-Event-ID": "1"})
    assert [event["id"] for event in read(answer.text)] == ["2", "3"]


@pytest.mark.parametrize("seen", ["3", "99"])
async def test_nothing_left_to_see_is_204_so_that_browsers_stop(
    world: World, http: httpx2.AsyncClient, seen: str
) -> None:
    job = await world.finish(await world.a_job())
    answer = await http.get(f"/v1/jobs/{job.id}/events", headers={"Last-Event-ID": seen})
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_client_ahead_of_the_job_is_let_go_when_the_job_ends(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events", {"Last-Event-ID": "9"}) as exchange:
        await exchange.started()
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.canceled")
        world.wake.ring(job_topic(job.id))
        await exchange.done()
        assert read(exchange.body.decode()) == []


@pytest.mark.parametrize("seen", ["x", "-1", "1.5", "9" * 19])
async def test_a_last_event_id_that_is_none_is_422(world: World, http: httpx2.AsyncClient, seen: str) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}/events", headers={"Last-Event-ID": seen})
    assert answer.status_code == 422


async def test_progress_has_no_id_and_is_told_when_it_changes(world: World) -> None:
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started")
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.started")
        world.jobs.tell(job.id, "job.stage", stage="meshing", fraction=0.25)
        world.wake.ring(job_topic(job.id))
        await exchange.until("0.25")
        await world.clock.until_asleep()
        world.wake.ring(job_topic(job.id))  # nothing new
        world.jobs.tell(job.id, "job.canceled")
        world.wake.ring(job_topic(job.id))
        await exchange.done()
    told = [(event["event"], event.get("id")) for event in read(exchange.body.decode())]
    assert told[2:] == [("job.stage", "3"), ("progress", None), ("job.canceled", "4")]
    progress = read(exchange.body.decode())[3]["data"]
    assert progress == {
        "job_id": job.id,
        "stage": "meshing",
        "fraction": 0.25,
        "queue_position": None,
        "eta_seconds": None,
        "eta_range_seconds": None,
        "preview_url": None,
    }


async def test_silence_is_broken_every_fifteen_seconds(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.queued")
        for _ in range(14):
            await world.clock.until_asleep()
            world.clock.advance(1.0)
        await world.clock.until_asleep()
        assert b": keep-alive" not in exchange.body
        world.clock.advance(1.0)
        await exchange.until(": keep-alive\n\n")


async def test_a_server_that_stops_ends_its_streams(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.queued")
        world.parts.stopping.set()
        await exchange.done()
        assert exchange.ended
    assert [event["id"] for event in read(exchange.body.decode())] == ["1"]  # and a reconnect goes on from it
    assert world.clock.monotonic() == 0.0


async def test_a_stream_outlasts_a_store_that_is_away_for_a_while(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}/events") as exchange:
        await exchange.until("job.queued")
        await world.clock.until_asleep()
        world.jobs.switch.away = True
        world.clock.advance(1.0)
        await world.clock.until_asleep()
        told = exchange.body
        world.jobs.tell(job.id, "job.started")
        world.clock.advance(1.0)  # it looks, in vain
        await world.clock.until_asleep()
        assert (exchange.body, exchange.ended) == (told, False)
        world.jobs.switch.away = False
        world.jobs.tell(job.id, "job.canceled")
        world.clock.advance(1.0)
        await exchange.done()
        assert exchange.ended
        events = [(event["id"], event["event"]) for event in read(exchange.body.decode())]
        assert events == [("1", "job.queued"), ("2", "job.started"), ("3", "job.canceled")]


async def test_streams_are_bounded_and_a_seat_is_freed_when_a_client_leaves(
    world: World, http: httpx2.AsyncClient
) -> None:
    job = await world.a_job()
    path = f"/v1/jobs/{job.id}/events"
    streams = [world.exchange("GET", path) for _ in range(LIMITS.streams_max)]
    for stream in streams:
        await stream.__aenter__()
        await stream.until("job.queued")
    refused = await http.get(path)
    assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
    assert refused.headers["retry-after"] == "5"
    for stream in streams:
        await stream.__aexit__()
    world.jobs.tell(job.id, "job.canceled")
    assert (await http.get(path)).status_code == 200


async def test_a_token_opens_the_stream_of_its_job(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    token = (await http.post(f"/v1/jobs/{job.id}/token")).json()["token"]
    async with world.bare_client() as browser:
        assert (await browser.get(f"/v1/jobs/{job.id}/events?token={token}")).status_code == 200


async def test_head_tells_and_does_not_wait(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    answer = await http.head(f"/v1/jobs/{job.id}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_long_log_is_told_whole(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    for _ in range(250):
        world.jobs.tell(job.id, "job.stage")
    world.jobs.tell(job.id, "job.canceled")
    events = read((await http.get(f"/v1/jobs/{job.id}/events")).text)
    assert [int(event["id"]) for event in events] == list(range(1, 253))
