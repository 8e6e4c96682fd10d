"""GET with `wait`: held until there is news, and not a moment longer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tempa.core.work import FEED, job_topic

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World


async def test_a_ring_ends_the_wait(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30") as exchange:
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.started")
        world.wake.ring(job_topic(job.id))
        assert await exchange.started() == 200
        assert json.loads(exchange.body)["status"] == "processing"
    assert world.clock.monotonic() == 0.0  # no time had to pass


async def test_a_lost_ring_costs_a_second(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30") as exchange:
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.started")
        world.clock.advance(1.0)
        assert await exchange.started() == 200


async def test_news_without_another_status_do_not_end_the_wait(world: World) -> None:
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started")
    held = {"If-None-Match": 'W/"2"'}
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=2", held) as exchange:
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.stage", stage="meshing")
        looks = world.jobs.looks
        world.wake.ring(job_topic(job.id))
        world.clock.advance(1.0)
        await world.clock.until_asleep()
        assert world.jobs.looks > looks
        assert exchange.start is None
        world.clock.advance(1.0)
        assert await exchange.started() == 200  # the ETag is another now
        assert exchange.header("etag") == 'W/"3"'


async def test_when_nothing_happens_the_answer_comes_at_the_end_of_the_time(world: World) -> None:
    job = await world.a_job()
    held = {"If-None-Match": 'W/"1"'}
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=1.5", held) as exchange:
        await world.clock.until_asleep()
        world.clock.advance(1.0)
        await world.clock.until_asleep()
        assert exchange.start is None
        world.clock.advance(0.5)
        assert await exchange.started() == 304
        assert exchange.header("retry-after") == "1"


async def test_what_the_etag_named_counts_not_what_stands_at_arrival(world: World) -> None:
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started")
    held = {"If-None-Match": 'W/"1"'}  # the client saw it queued
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30", held) as exchange:
        assert await exchange.started() == 200
        assert json.loads(exchange.body)["status"] == "processing"


@pytest.mark.parametrize("tags", ['W/"99"', '"abc"', 'W/"0"', 'W/"99999999999"'])
async def test_an_etag_the_job_never_had_is_answered_at_once(
    world: World, http: httpx2.AsyncClient, tags: str
) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}?wait=30", headers={"If-None-Match": tags})
    assert answer.status_code == 200


async def test_a_job_that_has_ended_is_answered_at_once(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    assert (await http.get(f"/v1/jobs/{job.id}?wait=30")).status_code == 200
    held = {"If-None-Match": 'W/"3"'}
    assert (await http.get(f"/v1/jobs/{job.id}?wait=30", headers=held)).status_code == 304


async def test_a_star_waits_for_another_status_than_now(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30", {"If-None-Match": "*"}) as exchange:
        await world.clock.until_asleep()
        world.jobs.tell(job.id, "job.canceled")
        world.wake.ring(job_topic(job.id))
        assert await exchange.started() == 304  # "*" is any ETag: the client asked for none of them


@pytest.mark.parametrize("wait", ["-1", "31", "30.01", "nan", "inf", "1e9", "x", "", "+1", "0x1", "5&wait=6"])
async def test_a_wait_that_is_none_is_422(world: World, http: httpx2.AsyncClient, wait: str) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}?wait={wait}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/wait"


@pytest.mark.parametrize("wait", ["0", "0.0", "00"])
async def test_no_wait_is_no_wait(world: World, http: httpx2.AsyncClient, wait: str) -> None:
    job = await world.a_job()
    assert (await http.get(f"/v1/jobs/{job.id}?wait={wait}")).status_code == 200


async def test_a_client_that_leaves_ends_the_wait(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30") as exchange:
        await world.clock.until_asleep()
        exchange.leave()
        await exchange.done()
    assert world.clock.monotonic() == 0.0


async def test_a_server_that_stops_ends_the_wait(world: World) -> None:
    job = await world.a_job()
    async with world.exchange("GET", f"/v1/jobs/{job.id}?wait=30") as exchange:
        await world.clock.until_asleep()
        world.parts.stopping.set()
        assert await exchange.started() == 200


async def test_the_feed_waits_for_its_next_event(world: World) -> None:
    async with world.exchange("GET", "/v1/events?wait=30") as exchange:
        await world.clock.until_asleep()
        job = await world.a_job()
        world.wake.ring(FEED)
        assert await exchange.started() == 200
        assert [event["job_id"] for event in json.loads(exchange.body)["items"]] == [job.id]


async def test_the_feed_does_not_wait_for_ever(world: World) -> None:
    async with world.exchange("GET", "/v1/events?wait=1") as exchange:
        await world.clock.until_asleep()
        world.clock.advance(1.0)
        assert await exchange.started() == 200
        assert json.loads(exchange.body) == {"items": [], "next_cursor": None}


async def test_many_may_wait_for_one_job(world: World) -> None:
    job = await world.a_job()
    waits = [world.exchange("GET", f"/v1/jobs/{job.id}?wait=30") for _ in range(20)]
    for exchange in waits:
        await exchange.__aenter__()
    await world.clock.until_asleep(20)
    world.jobs.tell(job.id, "job.canceled")
    world.wake.ring(job_topic(job.id))
    assert await asyncio.gather(*(exchange.started() for exchange in waits)) == [200] * 20
    for exchange in waits:
        await exchange.__aexit__()
