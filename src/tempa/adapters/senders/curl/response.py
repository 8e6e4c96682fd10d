"""An HTTP/1.x answer, taken in as it arrives: what is kept, and when enough is enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.adapters.senders.curl.exchange import Sink

HEAD_BYTES_MAX = 65_536  # all heads together, interim ones and trailers included

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n?")


class Response:
    """`status` is set once the final head is whole: the outcome is decided there, whatever the body does.

    `take_header` and `take_body` return False to say: stop, close the connection. `fault` says why
    if no status was reached. A `sink` takes the body in place of `body`.
    """

    def __init__(self, body_bytes_max: int, sink: Sink | None = None) -> None:
        self.status: int | None = None
        self.fault: str | None = None
        self.begun = False
        self.body = bytearray()
        self._body_bytes_max = body_bytes_max
        self._sink = sink
        self._code = 0  # of the head under way; 0 while a status line is due
        self._fields: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0

    def take_header(self, line: bytes) -> bool:
        """One line of a head (its status line and its blank last line too), or of the trailers."""
        self.begun = True
        self._head_bytes += len(line)
        if self._head_bytes > HEAD_BYTES_MAX:
            self.fault = "headers_too_large"
            return False
        if self.status is not None:
            return True
        if not self._code:
            return self._take_status_line(line)
        if line in (b"\r\n", b"\n"):
            return self._end_head()
        name, _, value = line.partition(b":")
        self._fields.append((name, value))
        return True

    def take_body(self, chunk: bytes) -> bool:
        """The next piece of the body."""
        if self._sink is not None:
            return self._sink.take(chunk)
        room = self._body_bytes_max - len(self.body)
        self.body += chunk[:room]
        return len(chunk) <= room

    def headers(self) -> dict[str, str]:
        """By lower-case name; the values of a repeated one are joined by a comma (RFC 9110 section 5.3)."""
        joined: dict[str, str] = {}
        for raw_name, raw_value in self._fields:
            name, value = raw_name.decode("latin-1").strip().lower(), raw_value.decode("latin-1").strip()
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return joined

    def _take_status_line(self, line: bytes) -> bool:
        match = _STATUS_LINE.fullmatch(line)
        self._code = int(match[1]) if match else 0
        if self._code in (0, 101):  # not HTTP; or another protocol, which nobody asked for
            self.fault = "protocol_error"
            return False
        return True

    def _end_head(self) -> bool:
        if self._code < 200:  # an interim answer tells nothing
            self._code = 0
            self._fields.clear()
            return True
        self.status = self._code
        return self._sink is None or self._sink.begin(self.status, self.headers())
