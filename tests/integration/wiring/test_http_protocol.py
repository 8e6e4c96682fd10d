"""What a connection may do before it is served, over real sockets.

Times are short and nobody sleeps: whoever is refused hears it, and where time has to pass, the end of
another connection's patience tells that it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from tempa.core.errors import PROBLEMS
from tempa.wiring.http_protocol import HttpBounds, bounded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Serve = Callable[..., Awaitable["Served"]]

    from starlette.types import Receive, Scope, Send

SECONDS = 10.0  # what no signal may take longer than
PATIENT = {"head_seconds": SECONDS * 2, "body_window_seconds": SECONDS * 2, "idle_seconds": SECONDS * 2}
HASTY = {"head_seconds": 0.15, "body_window_seconds": 0.15}
GET = b"GET /%s HTTP/1.1\r\nHost: tempa.test\r\n\r\n"


@dataclass
class App:
    """Says how many bytes came to which path. `/held` waits for `release`, `/early` reads nothing."""

    release: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached.set()
        if scope["path"] == "/held":
            await self.release.wait()
        size, message = 0, {"more_body": scope["path"] != "/early"}
        while message.get("more_body"):
            message = dict(await receive())
            size += len(message.get("body", b""))
        if message.get("type") == "http.disconnect":
            self.left.set()
            return
        await answer(send, f"{scope['path']} {size}".encode())


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Line:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(SECONDS):
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(SECONDS):
            status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(status.split()[1]), headers, body

    async def rest(self) -> bytes:
        """What comes until the other side closes."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()

    async def refused(self) -> dict[str, Any]:
        """The problem that is the last word on this connection."""
        status, headers, body = await self.answer()
        assert headers["content-type"] == "application/problem+json"
        assert headers["connection"] == "close"
        assert await self.rest() == b""
        problem: dict[str, Any] = json.loads(body)
        slug = problem["type"].removeprefix("urn:tempa:problem:")
        assert problem["status"] == status == PROBLEMS[slug].status
        assert problem["title"] == PROBLEMS[slug].title
        assert problem["code"] == slug.upper().replace("-", "_")
        return {**problem, "slug": slug, "headers": headers}


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serves = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serves.set()


@dataclass
class Served:
    app: App
    port: int
    lines: list[Line] = field(default_factory=list)

    async def line(self) -> Line:
        line = Line(*await asyncio.open_connection("127.0.0.1", self.port))
        self.lines.append(line)
        return line

    async def time_passes(self) -> None:
        """More than `head_seconds`: a head that was begun later than this call was cut off by now."""
        witness = await self.line()
        await witness.send(b"G")
        assert (await witness.refused())["slug"] == "request-timeout"


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    running: list[tuple[Served, _Server, asyncio.Task[None]]] = []

    async def start(**bounds: Any) -> Served:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        app, http = App(), bounded(HttpBounds(**{**PATIENT, **bounds}))
        server = _Server(uvicorn.Config(app, http=http, ws="none", log_config=None, lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        served = Served(app, listener.getsockname()[1])
        running.append((served, server, task))
        async with asyncio.timeout(SECONDS):
            await server.serves.wait()
        return served

    yield start
    for served, server, task in running:
        served.app.release.set()
        for line in served.lines:
            line.writer.transport.abort()
        server.should_exit = True
        async with asyncio.timeout(SECONDS):
            await task


async def test_a_head_without_an_end_is_cut_off_while_others_are_served(serve: Serve) -> None:
    served = await serve(linger_bytes=1 << 18)
    hostile, other = await served.line(), await served.line()
    await hostile.send(b"GET / HTTP/1.1\r\nHost: tempa.test\r\nX: ")
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 1 << 28:
            await hostile.send(b"a" * (1 << 16))
            sent += 1 << 16
            await other.send(GET % b"meanwhile")
            assert (await other.answer())[2] == b"/meanwhile 0"
    assert sent < 1 << 25  # what was read, and what the kernel had room for; never the quarter of a gigabyte
    assert not served.app.left.is_set()


@pytest.mark.parametrize(
    "headers",
    [
        b"X: " + b"a" * 200_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % n for n in range(20_000)),
        b"".join(b"X-%d: a\r\n" % n for n in range(128)),
        b"a" * 200_000,
    ],
    ids=["one long", "20,000", "one too many", "no colon"],
)
async def test_a_head_that_is_too_large_is_431(serve: Serve, headers: bytes) -> None:
    line = await (await serve()).line()
    await line.send(b"GET / HTTP/1.1\r\nHost: tempa.test\r\n" + headers + b"\r\n")
    problem = await line.refused()
    assert (problem["slug"], problem["status"]) == ("head-too-large", 431)
    assert "65536 bytes" in problem["detail"]
    assert "128 headers" in problem["detail"]


async def test_a_long_target_counts_as_head(serve: Serve) -> None:
    line = await (await serve()).line()
    await line.send(b"GET /" + b"a" * 200_000)
    assert (await line.refused())["slug"] == "head-too-large"


@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_head_at_the_limit_is_served(serve: Serve, pieces: int) -> None:
    served = await serve()
    line = await served.line()
    start, end = b"POST / HTTP/1.1\r\nHost: tempa.test\r\nContent-Length: 3\r\nX: ", b"\r\n\r\n"
    head = start + b"a" * ((1 << 16) - len(start) - len(end)) + end
    for _ in range(2):  # and the next one is counted anew
        for piece in range(pieces):
            await line.send(head[piece * len(head) // pieces : (piece + 1) * len(head) // pieces])
        await line.send(b"abc")
        assert (await line.answer())[2] == b"/ 3"


async def test_128_headers_are_served(serve: Serve) -> None:
    line = await (await serve()).line()
    await line.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 127 + b"\r\n")
    assert (await line.answer())[0] == 200


@pytest.mark.parametrize(
    "begun", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"\r\n\r\n"]
)
async def test_a_head_that_does_not_end_in_time_is_408(serve: Serve, begun: bytes) -> None:
    line = await (await serve(**HASTY)).line()
    await line.send(begun)
    assert (await line.refused())["slug"] == "request-timeout"


async def test_a_later_head_has_its_time_too(serve: Serve) -> None:
    line = await (await serve(**HASTY)).line()
    await line.send(GET % b"one" + b"GET /two")
    assert (await line.answer())[2] == b"/one 0"
    assert (await line.refused())["slug"] == "request-timeout"


async def test_a_connection_that_says_nothing_is_closed_without_a_word(serve: Serve) -> None:
    line = await (await serve(**HASTY)).line()
    assert await line.rest() == b""


async def test_an_idle_connection_is_closed(serve: Serve) -> None:
    line = await (await serve(idle_seconds=0.1)).line()
    await line.send(GET % b"one")
    assert (await line.answer())[0] == 200
    assert await line.rest() == b""


async def test_a_body_that_stalls_is_408_and_the_app_hears_of_it(serve: Serve) -> None:
    served = await serve(**HASTY)
    line = await served.line()
    await line.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + b"a" * 99)
    assert (await line.refused())["slug"] == "request-timeout"
    assert served.app.left.is_set()


async def test_nobody_is_read_to_the_end_who_was_answered_already(serve: Serve) -> None:
    line = await (await serve(**HASTY)).line()
    await line.send(b"POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert (await line.answer())[2] == b"/early 0"
    assert await line.rest() == b""  # no second answer: the client would take it for its next request's


async def test_a_large_body_is_read_whole_and_the_connection_used_again(serve: Serve) -> None:
    line = await (await serve()).line()
    for size in (1 << 25, 5):
        await line.send(b"POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
        await line.send(bytes(size))
        assert (await line.answer())[2] == b"/up %d" % size


async def test_an_answer_may_take_longer_than_a_request(serve: Serve) -> None:
    served = await serve(**HASTY)
    line = await served.line()
    await line.send(GET % b"held")
    async with asyncio.timeout(SECONDS):
        await served.app.reached.wait()
    await served.time_passes()
    served.app.release.set()
    assert (await line.answer())[2] == b"/held 0"


async def test_a_body_that_we_do_not_read_is_not_late(serve: Serve) -> None:
    """The app is busy elsewhere, the buffers are full: the client cannot send, and is not to blame."""
    served = await serve(**HASTY)
    line = await served.line()
    size = 1 << 24
    await line.send(b"POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
    sending = asyncio.create_task(line.send(bytes(size)))
    async with asyncio.timeout(SECONDS):
        await served.app.reached.wait()
    await served.time_passes()
    await served.time_passes()
    served.app.release.set()
    await sending
    assert (await line.answer())[2] == b"/held %d" % size


async def test_requests_sent_ahead_are_answered_in_their_order(serve: Serve) -> None:
    line = await (await serve()).line()
    await line.send(b"".join(GET % name for name in (b"one", b"two", b"three")))
    assert [(await line.answer())[2] for _ in range(3)] == [b"/one 0", b"/two 0", b"/three 0"]
    await line.send(GET % b"four")
    assert (await line.answer())[2] == b"/four 0"


async def test_no_more_than_so_many_are_sent_ahead(serve: Serve) -> None:
    line = await (await serve(pipelined=4)).line()
    await line.send(GET % b"a" * 1000)
    answers = (await line.rest()).count(b"HTTP/1.1 200")
    assert answers == 5  # the one that is served, and four that wait


async def test_answers_that_are_owed_go_before_a_refusal(serve: Serve) -> None:
    served = await serve()
    line = await served.line()
    await line.send(GET % b"held" + b"garbage\r\n\r\n")
    async with asyncio.timeout(SECONDS):
        await served.app.reached.wait()
    served.app.release.set()
    status, headers, body = await line.answer()
    assert (status, headers["connection"], body) == (200, "close", b"/held 0")
    assert await line.rest() == b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n",
        b"CONNECT tempa.test:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET \xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["no host", "two hosts", "two hosts in 1.0", "no colon", "connect", "target", "tls", "two lengths"],
)
async def test_what_is_no_request_is_400(serve: Serve, head: bytes) -> None:
    line = await (await serve()).line()
    await line.send(head)
    assert (await line.refused())["slug"] == "malformed-http"


async def test_a_body_that_is_broken_is_400(serve: Serve) -> None:
    served = await serve()
    line = await served.line()
    await line.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
    assert (await line.refused())["slug"] == "malformed-http"
    async with asyncio.timeout(SECONDS):
        await served.app.left.wait()


async def test_http_1_0_needs_no_host(serve: Serve) -> None:
    line = await (await serve()).line()
    await line.send(b"GET / HTTP/1.0\r\n\r\n")
    assert (await line.answer())[0] == 200
    assert await line.rest() == b""


async def test_one_connection_too_many_is_told_so_and_another_takes_a_place_that_is_free(
    serve: Serve,
) -> None:
    served = await serve(connections=2)
    first, second = await served.line(), await served.line()
    for line in (first, second):
        await line.send(GET % b"in")
        assert (await line.answer())[0] == 200
    refused = await served.line()
    await refused.send(GET % b"out")
    problem = await refused.refused()
    assert (problem["slug"], problem["headers"]["retry-after"]) == ("too-many-connections", "5")
    for line in (first, refused):
        line.writer.close()
        await line.writer.wait_closed()
    await second.send(GET % b"still-in")  # served after the server has seen the others go
    assert (await second.answer())[0] == 200
    third = await served.line()
    await third.send(GET % b"in")
    assert (await third.answer())[0] == 200
