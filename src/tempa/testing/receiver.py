"""A receiver of webhooks on loopback that behaves well or badly, as the path says. Raw sockets, HTTP/1.1.

    with Receiver() as receiver:
        receiver.script("/hook", "/status/503", "/ok")   # first 503, then 200 for good
        ...                                              # let something call receiver.url("/hook")
        first, second = receiver.wait_for(2)
        assert first.body == second.body

| path | what it does |
|---|---|
| `/ok[/STATUS]` | answers 200 (or another status) with a small body; so does every path not named here |
| `/status/STATUS` | the same |
| `/redirect/STATUS` | points to `/landed` |
| `/retry-after/STATUS/VALUE` | adds `Retry-After: VALUE` (percent-encoded) |
| `/hold` | answers 200 when `release()` is called |
| `/half-open` | takes the request and never answers |
| `/reset` | takes the request and resets the connection |
| `/close` | answers 200 as if the connection were to go on, and closes it |
| `/mute-reuse` | answers the first request of a connection, resets at the second |
| `/drip-headers`, `/drip-body` | one byte every 50 ms, without end |
| `/huge-body` | promises 4 GB and sends as fast as it is read |
| `/gzip-bomb` | 100 kB that unpack to 100 MB |
| `/binary-body` | NUL bytes and what is no UTF-8, called gzip |
| `/truncated-body` | promises 1,000 bytes, sends 10, closes |
| `/surplus` | a second answer right behind the first, unasked |
| `/bad-chunks` | chunked, with nonsense for a length |
| `/trailers` | chunked, with 1 MB of trailers |
| `/endless-1xx[/SECONDS]` | `103 Early Hints` without end, one every SECONDS (0) |
| `/continue` | `100`, `103`, then 200 |
| `/switch` | `101 Switching Protocols`, unasked |
| `/cookies` | 500 cookies |
| `/date/SECONDS` | its clock is off by so many seconds |
| `/many-headers`, `/long-header` | 200,000 headers; one header of 10 MB |
| `/status-line/TEXT` | answers with this status line (percent-encoded) |
| `/http-0.9` | a body without any head |
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import socket
import struct
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

    _Behaviour = Callable[..., Awaitable[bool]]  # of a reply and the words that follow its name in the path

_DRIP_SECONDS = 0.05
_HEAD_BYTES_MAX = 1_048_576


@dataclass(frozen=True, slots=True)
class Received:
    """One request. `headers` by lower-case name; `at_seconds` by time.monotonic(), when it was whole."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at_seconds: float
    connection: int  # which TCP connection, counted from 1
    turn: int  # which request of that connection, counted from 1


class Receiver:
    """A context manager: `start` listens at once and serves from a thread of its own, `close` ends it."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._changed = threading.Condition()
        self._requests: list[Received] = []
        self._scripts: dict[str, deque[str]] = {}
        self._connections = itertools.count(1)
        self._writers: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Listen. Raises OSError if the address is taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._socket = socket.create_server((self._host, self._port), family=family)
        self._port = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._released, self._stopped = asyncio.Event(), asyncio.Event()
        self._thread.start()

    def close(self) -> None:
        """Drop every connection and stop. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def requests(self) -> list[Received]:
        """What has come so far, in order of arrival."""
        with self._changed:
            return list(self._requests)

    def url(self, path: str = "/", host: str | None = None) -> str:
        """The URL of a behaviour; `host` in place of the address, if another name is to be resolved."""
        shown = host or (f"[{self._host}]" if ":" in self._host else self._host)
        return f"{'https' if self._tls else 'http'}://{shown}:{self._port}{path}"

    def script(self, path: str, *behaviours: str) -> None:
        """Let requests to `path` meet `behaviours` one after the other; the last one stays."""
        assert behaviours, "a script has at least one behaviour"
        with self._changed:
            self._scripts[path] = deque(behaviours)

    def release(self) -> None:
        """Let every `/hold` answer, those to come included."""
        self._loop.call_soon_threadsafe(self._released.set)

    def wait_for(self, count: int, timeout_seconds: float = 10.0, path: str | None = None) -> list[Received]:
        """The first requests (to `path`, if given), once `count` have come. Raises TimeoutError."""

        def matching() -> list[Received]:
            return [request for request in self._requests if path is None or request.path == path]

        with self._changed:
            if not self._changed.wait_for(lambda: len(matching()) >= count, timeout_seconds):
                raise TimeoutError(f"{len(matching())} of {count} requests came in {timeout_seconds} s")
            return matching()[:count]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._converse, sock=self._socket, ssl=self._tls, limit=_HEAD_BYTES_MAX, backlog=1024
        )
        await self._stopped.wait()
        server.close()
        for writer in list(self._writers):
            with contextlib.suppress(AttributeError):  # Python 3.11.2, when its TLS handshake had failed
                writer.transport.abort()
        talks = asyncio.all_tasks() - {asyncio.current_task()}
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = next(self._connections)
        self._writers.add(writer)
        try:
            for turn in itertools.count(1):
                request = await _read(reader, connection, turn)
                behave = self._record(request)
                if not await behave(_Reply(writer, request, self._released)):
                    break
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the sender hung up or speaks no HTTP; or close(), and asyncio would log the cancelling
        finally:
            writer.close()

    def _record(self, request: Received) -> _Behaviour:
        with self._changed:
            self._requests.append(request)
            script = self._scripts.get(request.path)
            path = request.path if script is None else script[0] if len(script) == 1 else script.popleft()
            self._changed.notify_all()
        name, *arguments = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        behave = _BEHAVIOURS.get(name)
        return _ok if behave is None else lambda reply: behave(reply, *arguments)


async def _read(reader: asyncio.StreamReader, connection: int, turn: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = request_line.split(" ", 2)
    fields = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body, time.monotonic(), connection, turn)


@dataclass(frozen=True, slots=True)
class _Reply:
    """One answer under way. A behaviour returns whether the connection goes on."""

    writer: asyncio.StreamWriter
    request: Received
    released: asyncio.Event

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, *headers: str, body: bytes = b"") -> bool:
        bare = status in (204, 304) or self.request.method == "HEAD"
        length = [] if bare else [f"Content-Length: {len(body)}"]
        head = "\r\n".join([f"HTTP/1.1 {status} Answer", *headers, *length, "", ""])
        await self.send(head.encode("latin-1") + (b"" if bare else body))
        return True

    async def endless(self, data: bytes, seconds: float) -> bool:
        while True:  # until the sender hangs up: send raises, or close() cancels
            await self.send(data)
            await asyncio.sleep(seconds)

    async def reset(self) -> bool:
        """Zero linger: the kernel sends RST in place of FIN."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        return False


async def _ok(reply: _Reply, status: str = "200") -> bool:
    return await reply.answer(int(status), body=b"ok")


async def _hold(reply: _Reply) -> bool:
    await reply.released.wait()
    return await reply.answer(200, body=b"ok")


async def _date(reply: _Reply, seconds: str) -> bool:
    shown = formatdate(time.time() + float(seconds), usegmt=True)
    return await reply.answer(200, f"Date: {shown}", body=b"ok")


async def _status_line(reply: _Reply, text: str) -> bool:
    await reply.send(text.encode("latin-1") + b"\r\nContent-Length: 2\r\n\r\nok")
    return False


def _says(*pieces: bytes, times: int = 1, keep: bool = False) -> _Behaviour:
    """Sends these pieces, the middle one `times` over, then goes on or closes."""

    async def behave(reply: _Reply) -> bool:
        for number, piece in enumerate(pieces):
            for _ in range(times if number == 1 else 1):
                await reply.send(piece)
        return keep

    return behave


def _never_ends(data: bytes, more: bytes, seconds: float = _DRIP_SECONDS) -> _Behaviour:
    """Sends `data`, then `more` for ever."""

    async def behave(reply: _Reply) -> bool:
        await reply.send(data)
        return await reply.endless(more, seconds)

    return behave


def _head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()


_KEPT = _head("Content-Length: 2") + b"ok"
_HINTS = _head("X-Hint: early", status="103 Early Hints")
_CHUNKED = _head("Transfer-Encoding: chunked") + b"2\r\nok\r\n"
_BEHAVIOURS: Mapping[str, _Behaviour] = {
    "ok": _ok,
    "status": _ok,
    "redirect": lambda reply, status: reply.answer(int(status), "Location: /landed"),
    "retry-after": lambda reply, status, value: reply.answer(int(status), f"Retry-After: {value}"),
    "hold": _hold,
    "half-open": _never_ends(b"", b""),
    "reset": lambda reply: reply.reset(),
    "close": _says(_KEPT),
    "mute-reuse": lambda reply: _ok(reply) if reply.request.turn == 1 else reply.reset(),
    "drip-headers": _never_ends(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "drip-body": _never_ends(_head("Content-Length: 1000000"), b"x"),
    "huge-body": _never_ends(_head("Content-Length: 4000000000"), b"x" * 65_536, 0),
    "gzip-bomb": lambda reply: reply.answer(
        200, "Content-Encoding: gzip", body=gzip.compress(bytes(1_000_000)) * 100
    ),
    "binary-body": lambda reply: reply.answer(200, "Content-Encoding: gzip", body=b"\x00\xff\xc3(\x00"),
    "truncated-body": _says(_head("Content-Length: 1000") + b"0123456789"),
    "surplus": _says(_KEPT + _head("Content-Length: 3", status="500 Smuggled") + b"bad", keep=True),
    "bad-chunks": _says(_CHUNKED + b"nonsense\r\n\r\n"),
    "trailers": _says(_CHUNKED + b"0\r\n", b"X-Trailer: " + b"x" * 1000 + b"\r\n", b"\r\n", times=1000),
    "endless-1xx": lambda reply, seconds="0": reply.endless(_HINTS, float(seconds)),
    "continue": _says(_head(status="100 Continue") + _HINTS + _KEPT, keep=True),
    "switch": _never_ends(_head("Upgrade: other", "Connection: Upgrade", status="101 Switching"), b"other"),
    "cookies": lambda reply: reply.answer(
        200, *(f"Set-Cookie: session{number}=x; Path=/" for number in range(500)), body=b"ok"
    ),
    "date": _date,
    "many-headers": _says(b"HTTP/1.1 200 OK\r\n", b"X-Many: " + b"x" * 100 + b"\r\n", b"\r\n", times=200_000),
    "long-header": _says(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 10_000, b"\r\n\r\n", times=1000),
    "status-line": _status_line,
    "http-0.9": _says(b"just a body, no head\r\n"),
}
