"""Result files by signed link: whole, in part, or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.api.conftest import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tempa.jobs.model import Job

CONTENT = bytes(range(256)) * 4000  # four chunks of sending
SIZE = len(CONTENT)
ETAG = f'"{hashlib.sha256(CONTENT).hexdigest()}"'


@pytest.fixture
async def job(world: World) -> Job:
    return await world.finish(await world.a_job(), CONTENT)


@pytest.fixture
def url(world: World, job: Job) -> str:
    return world.parts.links.artifact(job.id, "model.step")[0]


@pytest.fixture
async def anyone(world: World) -> AsyncIterator[httpx2.AsyncClient]:
    async with world.bare_client() as client:
        yield client


async def test_the_whole_file(anyone: httpx2.AsyncClient, url: str) -> None:
    answer = await anyone.get(url)
    assert answer.status_code == 200
    assert answer.content == CONTENT
    expected = {
        "content-length": str(SIZE),
        "content-type": "model/step",
        "content-disposition": 'attachment; filename="model.step"',
        "etag": ETAG,
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
    }
    assert {name: answer.headers[name] for name in expected} == expected


async def test_head_tells_the_same_without_the_file(anyone: httpx2.AsyncClient, url: str) -> None:
    whole, head = await anyone.get(url), await anyone.head(url, headers={"Range": "bytes=0-1"})
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers == whole.headers


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=300000-800000", 300_000, 800_000),
        (f"bytes={SIZE - 1}-", SIZE - 1, SIZE - 1),
        ("bytes=5-", 5, SIZE - 1),
        (f"bytes=5-{SIZE * 9}", 5, SIZE - 1),
        ("bytes=-7", SIZE - 7, SIZE - 1),
        (f"bytes=-{SIZE * 2}", 0, SIZE - 1),
        ("Bytes= 1-2 ", 1, 2),
        ("bytes=0-99999999999999999999999", 0, SIZE - 1),
        (f"bytes=7-{'9' * 4000}", 7, SIZE - 1),
        ("bytes=-99999999999999999999999", 0, SIZE - 1),
        (f"bytes={'0' * 30}5-{'0' * 30}6", 5, 6),
        ("bytes=, 1-2 ,,", 1, 2),
    ],
)
async def test_a_range_is_a_part(
    anyone: httpx2.AsyncClient, url: str, asked: str, first: int, last: int
) -> None:
    answer = await anyone.get(url, headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == CONTENT[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/{SIZE}"
    assert answer.headers["content-length"] == str(last + 1 - first)
    assert answer.headers["etag"] == ETAG


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-1,5-6",
        "lines=1-2",
        "bytes=5-4",
        "bytes=a-b",
        "bytes=-",
        "bytes",
        "",
        "bytes=1-2-3",
        "bytes=--1",
        "bytes=99999999999999999999999-99999999999999999999998",
        f"bytes=0-{'9' * 4001}",
        "bytes=0-1,-1",
        f"bytes={SIZE}-,0-1",
        "bytes=,",
        "bytes=1 - 2",
        "bytes=1-2 3-4",
    ],
)
async def test_a_range_we_do_not_serve_is_the_whole_file(
    anyone: httpx2.AsyncClient, url: str, asked: str
) -> None:
    answer = await anyone.get(url, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, CONTENT)


@pytest.mark.parametrize(
    "asked",
    [
        f"bytes={SIZE}-",
        f"bytes={SIZE}-{SIZE + 5}",
        "bytes=-0",
        "bytes=99999999999999999999999-",
        "bytes=99999999999999999999998-99999999999999999999999",
    ],
)
async def test_a_range_outside_is_416(anyone: httpx2.AsyncClient, url: str, asked: str) -> None:
    answer = await anyone.get(url, headers={"Range": asked})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{SIZE}"
    assert answer.json()["type"] == "urn:tempa:problem:range-not-satisfiable"


@pytest.mark.parametrize(
    ("if_range", "status"),
    [(ETAG, 206), (f"W/{ETAG}", 200), ('"x"', 200), ("Mon, 30 Nov 2026 12:00:00 GMT", 200)],
)
async def test_if_range_guards_the_part(
    anyone: httpx2.AsyncClient, url: str, if_range: str, status: int
) -> None:
    answer = await anyone.get(url, headers={"Range": "bytes=0-1", "If-Range": if_range})
    assert answer.status_code == status


@pytest.mark.parametrize("held", [ETAG, f"W/{ETAG}", "*", f'"x", {ETAG}'])
async def test_what_the_client_has_is_304(anyone: httpx2.AsyncClient, url: str, held: str) -> None:
    answer = await anyone.get(url, headers={"If-None-Match": held, "Range": "bytes=0-1"})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", ETAG)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("signature=", "signature=A"),
        ("model.step", "model.stl"),
        ("expires=1", "expires=2"),
        ("expires=", "expires=0"),
        ("expires=", "expires=%2b"),
        ("expires=", "was="),
        ("signature=", "was="),
        ("&signature", "&signature=x&signature"),
        ("signature=", "signature=%ff%00"),
    ],
)
async def test_an_altered_link_is_403(anyone: httpx2.AsyncClient, url: str, old: str, new: str) -> None:
    assert old in url
    answer = await anyone.get(url.replace(old, new))
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:tempa:problem:invalid-signature"


@pytest.mark.parametrize("more", ["&signature=x", "&expires=1"])
async def test_a_link_that_says_two_things_is_403(anyone: httpx2.AsyncClient, url: str, more: str) -> None:
    assert (await anyone.get(url + more)).status_code == 403


async def test_a_link_ends(world: World, anyone: httpx2.AsyncClient, url: str) -> None:
    world.clock.advance(3599)
    assert (await anyone.get(url)).status_code == 200
    world.clock.advance(1)
    assert (await anyone.get(url)).status_code == 403


async def test_a_key_does_not_open_what_no_link_does(http: httpx2.AsyncClient, job: Job) -> None:
    assert (await http.get(f"/v1/artifacts/{job.id}/model.step")).status_code == 403


async def test_what_the_job_did_not_publish_is_404(
    world: World, anyone: httpx2.AsyncClient, job: Job
) -> None:
    running = await world.a_job()
    for job_id, name in ((job.id, "other.step"), (running.id, "model.step"), ("cad_x", "model.step")):
        answer = await anyone.get(world.parts.links.artifact(job_id, name)[0])
        assert answer.status_code == 404


async def test_after_its_retention_a_file_is_gone(world: World, anyone: httpx2.AsyncClient, job: Job) -> None:
    world.clock.advance(30 * 86_400)
    answer = await anyone.get(world.parts.links.artifact(job.id, "model.step")[0])
    assert (answer.status_code, answer.json()["code"]) == (410, "GONE")


async def test_a_removed_job_gives_no_file_even_while_the_bytes_linger(
    world: World, anyone: httpx2.AsyncClient, job: Job, url: str
) -> None:
    await world.jobs.mark_removed("default", job.id)
    assert (await anyone.get(url)).status_code == 410


async def test_a_file_whose_bytes_are_gone_is_410(
    world: World, anyone: httpx2.AsyncClient, job: Job, url: str
) -> None:
    await world.artifacts.delete(f"{job.id}.a1")
    assert (await anyone.get(url)).status_code == 410


async def test_a_name_is_told_in_plain_or_encoded(world: World, anyone: httpx2.AsyncClient, job: Job) -> None:
    assert job.result is not None
    name = 'größe "1".step'
    artifact = replace(job.result.artifacts[0], name=name)
    world.jobs.rows[job.id] = replace(job, result=replace(job.result, artifacts=(artifact,)))
    answer = await anyone.get(world.parts.links.artifact(job.id, name)[0])
    assert answer.status_code == 200
    expected = "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%221%22.step"
    assert answer.headers["content-disposition"] == expected


async def test_a_client_that_leaves_stops_the_sending(world: World, url: str) -> None:
    path = url.removeprefix("http://tempa.test")
    async with world.exchange("GET", path) as exchange:
        exchange.leave()
        await exchange.done()
        assert exchange.header("content-length") == str(SIZE)
        assert len(exchange.body) < SIZE


async def test_a_picture_of_what_is_made_can_be_looked_at_while_it_is(
    world: World, http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started")
    drawn = tmp_path / "live-preview.png"
    drawn.write_bytes(b"a picture")
    await world.artifacts.show(f"{job.id}.a0/live-preview.png", drawn, 0)
    view = (await http.get(f"/v1/jobs/{job.id}")).json()
    url = view["progress"]["preview_url"]
    async with world.bare_client() as anybody:
        shown = await anybody.get(url)
        assert (shown.status_code, shown.content) == (200, b"a picture")
        assert shown.headers["content-type"] == "image/png"
        assert shown.headers["cache-control"] == "no-store"
        world.jobs.tell(job.id, "job.failed")
        assert (await anybody.get(url)).status_code == 404
    view = (await http.get(f"/v1/jobs/{job.id}")).json()
    assert view["progress"]["preview_url"] is None


async def test_a_job_that_draws_nothing_has_no_picture(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started")
    assert (await http.get(f"/v1/jobs/{job.id}")).json()["progress"]["preview_url"] is None
