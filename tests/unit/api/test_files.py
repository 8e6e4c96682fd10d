"""Uploads: raw or as a form, streamed to the store, never too much of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.api.conftest import LIMITS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from tests.unit.api.conftest import World

FORM = {"Content-Type": "multipart/form-data; boundary=b0undary"}


def part(name: str, content: bytes, filename: str | None = "part.step") -> bytes:
    """One field of a form, as RFC 7578 writes it."""
    named = f'; filename="{filename}"' if filename else ""
    head = f'--b0undary\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


END = b"--b0undary--\r\n"


async def stored(world: World, file_id: str) -> bytes:
    path = await world.artifacts.path(world.jobs.files[file_id].key)
    assert path is not None
    return path.read_bytes()


def nothing_is_left(world: World) -> bool:
    return world.jobs.files == {} and not [path for path in world.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("media_type", ["application/octet-stream", "model/step", "application/json", None])
async def test_a_raw_body_is_the_file_whatever_it_is_called(
    world: World, http: httpx2.AsyncClient, media_type: str | None
) -> None:
    content = bytes(range(256)) * 5
    headers = {"Content-Type": media_type} if media_type else {}
    answer = await http.post("/v1/files", content=content, headers=headers)
    assert answer.status_code == 201
    assert answer.json() == {
        "file_id": answer.json()["file_id"],
        "sha256": hashlib.sha256(content).hexdigest(),
        "file_size_bytes": 1280,
        "expires_at": "2026-12-07T12:00:00.000Z",
    }
    assert answer.json()["file_id"].startswith("file_")
    assert await stored(world, answer.json()["file_id"]) == content


async def test_a_form_made_by_a_client_library(world: World, http: httpx2.AsyncClient) -> None:
    content = b"\r\n--not the boundary\r\n" * 500
    answer = await http.post("/v1/files", files={"file": ("part.step", content, "model/step")})
    assert answer.status_code == 201
    assert await stored(world, answer.json()["file_id"]) == content


@pytest.mark.parametrize("size", [1, 2, 7, 64])
async def test_a_form_may_arrive_in_pieces_of_any_size(
    world: World, http: httpx2.AsyncClient, size: int
) -> None:
    content = b"\r\n--b0undar\r\nx--\r\n\r\n-b0undary--"
    form = part("file", content) + END

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(form), size):
            yield form[start : start + size]

    answer = await http.post("/v1/files", content=pieces(), headers=FORM)
    assert answer.status_code == 201
    assert await stored(world, answer.json()["file_id"]) == content


BAD_FORMS = {
    "another field": (part("image", b"x") + END, "/image"),
    "a field before": (part("note", b"x", None) + part("file", b"x") + END, "/note"),
    "a field after": (part("file", b"x") + part("note", b"x", None) + END, "/note"),
    "two files": (part("file", b"x") + part("file", b"y") + END, "/file"),
    "no file": (END, "/file"),
    "cut short": (part("file", b"x"), ""),
    "no form": (b"solid", ""),
    "empty body": (b"", ""),
    "empty file": (part("file", b"") + END, ""),
    "no name": (b"--b0undary\r\nContent-Type: text/plain\r\n\r\nx\r\n" + END, "/"),
    "bad header": (b"--b0undary\r\nContent Disposition: x\r\n\r\nx\r\n" + END, ""),
}


@pytest.mark.parametrize(("form", "pointer"), BAD_FORMS.values(), ids=BAD_FORMS.keys())
async def test_a_form_that_is_not_one_file_is_422_and_leaves_nothing(
    world: World, http: httpx2.AsyncClient, form: bytes, pointer: str
) -> None:
    answer = await http.post("/v1/files", content=form, headers=FORM)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert nothing_is_left(world)


@pytest.mark.parametrize("boundary", ["", "; boundary=", f"; boundary={'b' * 300}"])
async def test_a_form_without_a_sound_boundary_is_422(http: httpx2.AsyncClient, boundary: str) -> None:
    headers = {"Content-Type": f"multipart/form-data{boundary}"}
    assert (await http.post("/v1/files", content=b"x", headers=headers)).status_code == 422


async def test_an_empty_body_is_422(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post("/v1/files", content=b"")
    assert answer.status_code == 422
    assert nothing_is_left(world)


async def test_a_file_at_the_limit_fits_raw_and_in_a_form(http: httpx2.AsyncClient) -> None:
    content = b"x" * LIMITS.upload_bytes
    assert (await http.post("/v1/files", content=content)).status_code == 201
    assert (await http.post("/v1/files", files={"file": content})).status_code == 201


async def test_an_announced_upload_over_the_limit_is_refused_unread(world: World) -> None:
    headers = {"Content-Length": str(LIMITS.upload_bytes + 1)}
    async with world.exchange("POST", "/v1/files", headers, body=None) as exchange:
        assert await exchange.started() == 413
        assert exchange.taken == 0
        assert json.loads(exchange.body)["type"] == "urn:tempa:problem:body-too-large"


@pytest.mark.parametrize("headers", [{}, FORM])
async def test_a_streamed_upload_is_refused_as_soon_as_it_passes_the_limit(
    world: World, headers: dict[str, str]
) -> None:
    piece = LIMITS.upload_bytes // 2
    async with world.exchange("POST", "/v1/files", headers, body=None) as exchange:
        exchange.send_body(part("file", b"x" * piece)[:-2] if headers else b"x" * piece, more=True)
        for _ in range(8):
            exchange.send_body(b"x" * piece, more=True)
        assert await exchange.started() == 413
        assert exchange.taken <= 4
    assert nothing_is_left(world)


async def test_what_follows_a_form_is_bounded_too(world: World) -> None:
    async with world.exchange("POST", "/v1/files", FORM, body=None) as exchange:
        exchange.send_body(part("file", b"x") + END, more=True)
        for _ in range(8):
            exchange.send_body(b"x" * LIMITS.upload_bytes, more=True)
        assert await exchange.started() == 413
    assert nothing_is_left(world)


async def test_a_client_that_leaves_leaves_nothing(world: World) -> None:
    async with world.exchange("POST", "/v1/files", body=None) as exchange:
        exchange.send_body(b"half", more=True)
    assert nothing_is_left(world)


async def test_bytes_that_could_not_be_entered_are_dropped(world: World, http: httpx2.AsyncClient) -> None:
    await http.get("/v1/limits")  # the key is known now
    world.jobs.switch.away = True
    answer = await http.post("/v1/files", content=b"solid")
    assert answer.status_code == 503
    assert nothing_is_left(world)


async def test_each_upload_is_a_file_of_its_own_whatever_key_it_has(http: httpx2.AsyncClient) -> None:
    key = {"Idempotency-Key": "order-17"}
    first, again, other = [
        await http.post("/v1/files", content=content, headers=key) for content in (b"a", b"a", b"b")
    ]
    assert [answer.status_code for answer in (first, again, other)] == [201] * 3
    assert first.json()["sha256"] == again.json()["sha256"] != other.json()["sha256"]
    assert len({answer.json()["file_id"] for answer in (first, again, other)}) == 3


async def test_a_full_disk_is_503(world: World, http: httpx2.AsyncClient) -> None:
    (world.folder / ".tempa" / "scratch").rmdir()
    (world.folder / ".tempa" / "scratch").touch()  # no folder can be made there
    answer = await http.post("/v1/files", content=b"solid")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")


async def test_an_encoded_upload_is_415(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/v1/files", content=b"x", headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415
