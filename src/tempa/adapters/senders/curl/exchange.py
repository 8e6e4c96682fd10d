"""One request on its way, and the rules of the house it goes by."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from tempa.core.addresses import Network
    from tempa.webhooks.ports import Answer, Outbound

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - RFC 9110's word for a name
_HEADER = re.compile(rf"(?P<name>{_TOKEN}): (?P<value>[\t\x20-\x7e\x80-\xff]*)")


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every exchange of a sender."""

    allow_networks: Sequence[Network]
    connect_timeout_seconds: float
    user_agent: str
    body_seconds: float
    ca_file: str | None


class Sink(Protocol):
    """Takes a whole body as it comes, in place of the excerpt; called in the transport's thread.

    False from `begin` or `take` ends the exchange. `end` is called last if a status came: whether the
    body did, all of it. Its time is the request's alone, unless less than a KiB a second comes for
    `trickle_seconds` (0: however long): that is a timeout.
    """

    @property
    def trickle_seconds(self) -> int: ...
    def begin(self, status: int, headers: Mapping[str, str]) -> bool: ...
    def take(self, chunk: bytes) -> bool: ...
    def end(self, *, whole: bool) -> None: ...


class Exchange:
    """A request, and the future its sender awaits.

    `started` is when it was asked for, before the name was looked up (time.monotonic()). `pin` tells
    libcurl the addresses of the host. `fresh` asks for a new connection. `sink` takes the body. Raises
    ValueError for a header that is none.
    """

    def __init__(
        self,
        request: Outbound,
        future: asyncio.Future[Answer],
        started: float,
        pin: str | None,
        sink: Sink | None = None,
    ) -> None:
        self.request = request
        self.future = future
        self.started = started
        self.lookup_seconds = time.monotonic() - started
        self.pin = pin
        self.sink = sink
        self.header_lines = _header_lines(request.headers)
        self.fresh = False


def _header_lines(headers: Sequence[tuple[str, str]]) -> list[bytes]:
    """In libcurl's spelling. A line break in a value would be another header: ValueError."""
    lines = [b"Expect:"]  # do not wait for "100 Continue" before a large body
    typed = False
    for name, value in headers:
        line = f"{name}: {value}"
        match = _HEADER.fullmatch(line)
        if match is None or match["name"] != name:
            raise ValueError(f"not a header: {name!r}")
        lines.append(line.encode("latin-1") if match["value"].strip() else f"{name};".encode())
        typed = typed or name.lower() == "content-type"
    return lines if typed else [*lines, b"Content-Type:"]  # libcurl would call it a form
