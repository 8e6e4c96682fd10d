"""A receiver that costs little: keep-alive HTTP/1.1 in a process of its own, told by lines on its input.

| path | what it does |
|---|---|
| `/ok` | 200, and notes when the first byte of the job's request came |
| `/limited` | 503 until it was told a capacity; then 429 to what is beyond it; notes when each came |
| `/hang` | takes the request and never answers |
| `/drip` | a byte of a head every 50 ms, without end |

| line | what it does |
|---|---|
| `capacity N` | `/limited` takes N a second from now on, evenly spaced but for a tenth of a second |
| `report` | says what came since the last report, as JSON |
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast

import uvloop

from bench.told import say
from bench.webhooks.cores import RECEIVER, pin

_DRIP_SECONDS = 0.05
_CREDIT_SECONDS = 0.1


def _answer(status: str, body: bytes = b"ok") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


_OK = _answer("200 OK")
_DOWN = _answer("503 Service Unavailable")
_BUSY = _answer("429 Too Many Requests")
_DRIPPING = b"HTTP/1.1 200 OK\r\nX-Drip: "


class Capacity:
    """Takes so many a second, evenly spaced; a short burst may use what was left over right before."""

    def __init__(self, per_second: float) -> None:
        self._apart = 1 / per_second
        self._due = 0.0  # when the next one has its place

    def takes(self, now: float) -> bool:
        """Whether there is room for one at `now` (seconds)."""
        due = max(self._due, now - _CREDIT_SECONDS)
        if due > now:
            return False
        self._due = due + self._apart
        return True


class Book:
    """What came, and what was asked for."""

    def __init__(self) -> None:
        self.capacity: Capacity | None = None
        self.clear()

    def clear(self) -> None:
        """Forget what came."""
        self.requests = 0
        self.first_bytes: dict[str, float] = {}  # job id -> time.monotonic()
        self.limited: list[tuple[float, bool]] = []  # when each came, and whether it was taken

    def obey(self, line: str) -> None:
        """One line."""
        command, _, argument = line.strip().partition(" ")
        if command == "capacity":
            self.capacity = Capacity(float(argument))
            self.limited.clear()
        elif command == "report":
            say({"requests": self.requests, "first_bytes": self.first_bytes, "limited": self.limited})
            self.clear()


class Connection(asyncio.Protocol):
    """One sender's connection; a request at a time, as all senders here do it."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._received = bytearray()
        self._needed = 0  # bytes of the request under way, once its head is whole
        self._began = 0.0
        self._dripping: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        if self._dripping:
            self._dripping.cancel()

    def data_received(self, data: bytes) -> None:
        received = self._received
        if not received:
            self._began = time.monotonic()
        received += data
        if not self._needed:
            head, end, _ = received.partition(b"\r\n\r\n")
            if not end:
                return
            length = int(_between(bytes(head).lower(), b"content-length: ", b"\r\n") or 0)
            self._needed = len(head) + 4 + length
        if len(received) >= self._needed:
            self._needed = 0
            self._take(bytes(received))
            received.clear()

    def _take(self, request: bytes) -> None:
        book = self._book
        book.requests += 1
        path = _between(request, b" ", b" ").partition(b"?")[0]
        if path == b"/ok":
            book.first_bytes[_between(request, b'"job_id":"', b'"').decode()] = self._began
            self._transport.write(_OK)
        elif path == b"/limited":
            self._transport.write(self._limited())
        elif path == b"/drip":
            self._transport.write(_DRIPPING)
            self._drip()

    def _limited(self) -> bytes:
        capacity = self._book.capacity
        if capacity is None:
            self._book.limited.append((self._began, False))
            return _DOWN
        taken = capacity.takes(self._began)
        self._book.limited.append((self._began, taken))
        return _OK if taken else _BUSY

    def _drip(self) -> None:
        self._transport.write(b"x")
        self._dripping = asyncio.get_running_loop().call_later(_DRIP_SECONDS, self._drip)


def _between(text: bytes, before: bytes, after: bytes) -> bytes:
    start = text.find(before)
    if start < 0:
        return b""
    start += len(before)
    end = text.find(after, start)
    return text[start:] if end < 0 else text[start:end]


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    book = Book()
    server = await loop.create_server(lambda: Connection(book), "127.0.0.1", 0, backlog=2048)
    say({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        book.obey(line)


if __name__ == "__main__":
    pin(RECEIVER)
    uvloop.run(_serve())
