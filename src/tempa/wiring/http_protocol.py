"""HTTP/1.1 with bounds: how much a connection may send before it is served, and how slowly.

uvicorn leaves all of this to a proxy in front. Without one a single header without an end took in
145 MiB and held up every other request for six seconds; 400 requests sent by half stayed open for
good. Here the bytes of a head are counted as they come, and a clock runs while a request is on its
way. It does not run while a request is served: long polls and streams take as long as they take.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tempa.core.errors import PROBLEMS
from tempa.core.limits import KIB, MIB

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_RETRY_SECONDS = 5
_PIECE_BYTES = 16 * KIB  # what the parser is fed at once: a head is cut at most this far beyond its limit
_SPARE = 64  # connections beyond the cap that are still told so; more are dropped without a word


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBounds:
    """What one connection may do. Sizes in bytes, times in seconds."""

    # Proxies and browsers stop at 8 to 32 KiB themselves.
    head_bytes: int = 64 * KIB
    headers: int = 128
    # From the connection's opening, or a later request's first byte, to the empty line.
    head_seconds: float = 10.0
    # A body goes on at 0.8 KiB/s at least, as over the worst of mobile links, and has to end: the
    # largest upload (256 MiB) takes two hours at 36 KiB/s.
    body_window_seconds: float = 20.0
    body_window_bytes: int = 16 * KIB
    body_seconds: float = 7200.0
    # Between two requests. Longer than the 60 s for which proxies keep theirs: they must not send on a
    # connection that is being closed, for they may not ask again when it was a POST.
    idle_seconds: float = 75.0
    # Requests sent ahead of their turn: 64 KiB may hold 3,000, and each takes 3 KiB here.
    pipelined: int = 64
    connections: int = 4096
    # A connection that is closed with bytes unread takes our last answer with it (RFC 9112, section
    # 9.6): so what still comes is read for a moment, and dropped.
    linger_seconds: float = 2.0
    linger_bytes: int = MIB


def bounded(bounds: HttpBounds) -> type[HttpToolsProtocol]:
    """The protocol of uvicorn, held to `bounds`: the `http` of a `uvicorn.Config`."""
    return type("BoundedHttp", (BoundedHttp,), {"bounds": bounds})


class BoundedHttp(HttpToolsProtocol):
    """One connection. It is in a head until the empty line has come, and after a request's end again."""

    bounds: ClassVar[HttpBounds] = HttpBounds()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.timeout_keep_alive = self.bounds.idle_seconds  # type: ignore[assignment] # tests want fractions
        self._in_head = True
        self._head_bytes = 0  # 0: nothing of the next request has come
        self._body_bytes = 0
        self._body_until = 0.0
        self._fault = "malformed-http"  # what the parser's next complaint means
        self._refused = False
        self._dropped_bytes = 0
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head, unless there are too many who do."""
        super().connection_made(transport)
        beyond = len(self.connections) - self.bounds.connections
        if beyond > _SPARE:
            transport.abort()
        elif beyond > 0:
            self._refuse("too-many-connections")
        else:
            self._set_clock(self.bounds.head_seconds, self._check_head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser piece by piece: what it keeps it cannot be told to forget."""
        for start in range(0, len(data), _PIECE_BYTES):
            if self._refused:
                self._drop(len(data) - start)
                return
            if self.transport.is_closing():
                return
            self._take(data[start : start + _PIECE_BYTES])

    def _take(self, piece: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(piece)
        else:
            self._body_bytes += len(piece)
        super().data_received(piece)
        if self._refused or self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > self.bounds.head_bytes:
            self._refuse("head-too-large")
        elif self._clock is None:
            self._watch()

    def _watch(self) -> None:
        """Start the clock of whatever has begun and not ended; mostly that is nothing."""
        if not self._in_head:
            self._set_clock(self.bounds.body_window_seconds, self._check_body, self._body_bytes)
        elif self._head_bytes:
            self._set_clock(self.bounds.head_seconds, self._check_head)

    def on_message_begin(self) -> None:
        """A head begins, perhaps in the same piece that the request before it ended in."""
        super().on_message_begin()
        self._head_bytes = self._head_bytes or 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count."""
        super().on_header(name, value)
        if len(self.headers) > self.bounds.headers:
            self._complain("head-too-large")

    def on_headers_complete(self) -> None:
        """The head is whole: serve it. RFC 9112, section 3.2: without its one Host it is refused."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            self._complain("malformed-http")
        if len(self.pipeline) >= self.bounds.pipelined:
            self._complain("malformed-http")  # never told: answers are owed, and go first
        super().on_headers_complete()
        self._stop_clock()
        self._in_head = False
        self._body_bytes = 0
        self._body_until = self.loop.time() + self.bounds.body_seconds

    def on_message_complete(self) -> None:
        """The request is whole: what comes next is a head."""
        super().on_message_complete()
        self._stop_clock()
        self._in_head = True
        self._head_bytes = 0

    def send_400_response(self, msg: str) -> None:
        """The parser has complained, on its own account or on ours."""
        del msg
        self._refuse(self._fault)

    def _complain(self, slug: str) -> NoReturn:
        """From within a callback of the parser, which must not go on."""
        self._fault = slug
        raise ValueError(slug)

    def _check_head(self) -> None:
        self._clock = None
        if self.flow.read_paused:  # we do not listen: no fault of the client
            self._watch()
        elif self._head_bytes:
            self._refuse("request-timeout")
        else:
            self.transport.close()  # opened and never used, as browsers do

    def _check_body(self, before: int) -> None:
        self._clock = None
        slow = self._body_bytes - before < self.bounds.body_window_bytes
        late = self.loop.time() >= self._body_until
        if not self.flow.read_paused and (slow or late or self.cycle.response_complete):
            self._refuse("request-timeout")
        else:
            self._watch()

    def _refuse(self, slug: str) -> None:
        """Serve no more here. Tell why, unless an answer is under way; those to earlier requests go first."""
        self._refused = True
        self._stop_clock()
        self._unset_keepalive_if_required()
        cycle = self.cycle  # None before the first request, whatever its type says
        busy = bool(cycle) and not cycle.response_complete
        if busy and self._in_head:
            cycle.keep_alive = False
        elif self.pipeline:  # the body of a request that waits its turn: there is no going on behind it
            self.transport.abort()
        else:
            if self._in_head or (busy and not cycle.response_started):
                self.transport.write(self._answer(slug))
            if busy:
                cycle.disconnected = True
                cycle.message_event.set()
            self._hang_up()

    def _answer(self, slug: str) -> bytes:
        body = json.dumps(_problem(slug, self.bounds)).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if PROBLEMS[slug].status == 503:
            headers.append((b"retry-after", str(_RETRY_SECONDS).encode()))
        lines = (name + b": " + value + b"\r\n" for name, value in headers)
        return b"".join((STATUS_LINE[PROBLEMS[slug].status], *lines, b"\r\n", body))

    def _hang_up(self) -> None:
        self.flow.resume_reading()
        self.transport.write_eof()
        self._set_clock(self.bounds.linger_seconds, self.transport.abort)

    def _drop(self, size_bytes: int) -> None:
        self._dropped_bytes += size_bytes
        if self._dropped_bytes > self.bounds.linger_bytes:
            self.transport.abort()

    def _set_clock(self, seconds: float, ring: Callable[..., object], *arguments: object) -> None:
        self._clock = self.loop.call_later(seconds, ring, *arguments)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def _problem(slug: str, bounds: HttpBounds) -> dict[str, Any]:
    return {
        "type": f"urn:tempa:problem:{slug}",
        "title": PROBLEMS[slug].title,
        "status": PROBLEMS[slug].status,
        "detail": _DETAILS[slug].format(bounds=bounds),
        "code": slug.upper().replace("-", "_"),
        "errors": [],
    }


_DETAILS = {
    "malformed-http": "The bytes received are no request in HTTP/1.1, with one Host.",
    "request-timeout": "A head has to be whole within {bounds.head_seconds:g} s; of a body, "
    "{bounds.body_window_bytes} bytes have to come every {bounds.body_window_seconds:g} s.",
    "head-too-large": "At most {bounds.head_bytes} bytes, and {bounds.headers} headers.",
    "too-many-connections": "At most {bounds.connections} connections may be open at once. Ask again later.",
}
