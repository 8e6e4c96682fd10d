"""One request and what came of it: its libcurl handle, its veto on addresses, its answer."""

from __future__ import annotations

import math
import os
import re
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pycurl

from tempa.adapters.senders.curl.errors import error_name
from tempa.adapters.senders.curl.response import Response
from tempa.core.addresses import refused
from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from tempa.core.addresses import Network
    from tempa.webhooks.ports import Outbound

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 token
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_IDLE_SECONDS = 60  # a kept connection older than this is not used again
_TIMINGS = {
    "connect": pycurl.CONNECT_TIME,
    "tls": pycurl.APPCONNECT_TIME,
    "first_byte": pycurl.STARTTRANSFER_TIME,
}
_DIED = (pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR, pycurl.E_GOT_NOTHING)


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every exchange of a sender."""

    allow_networks: Sequence[Network]
    connect_timeout_seconds: float
    user_agent: str
    ca_file: str | None


class Exchange:
    """Made by the caller, who awaits `future`; all else runs in the thread that owns libcurl."""

    def __init__(
        self, request: Outbound, rules: Rules, future: asyncio.Future[Answer], started: float
    ) -> None:
        self.request = request
        self.future = future
        self.curl: pycurl.Curl | None = None
        self._rules = rules
        self._header_lines = _header_lines(request)
        self._started = started  # before the name was looked up
        self._lookup_seconds = time.monotonic() - started
        self._pin: str | None = None
        self._fresh = False

    def pin(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Let libcurl take these addresses for `host`, and forget them again after a minute (`+`)."""
        listed = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
        self._pin = f"+{host}:{port}:{listed}"

    def open(self, head_arrived: Callable[[Exchange], None]) -> pycurl.Curl:
        """A handle ready to run, with what is left of the time.

        `head_arrived` is called when the status is decided and only the body is still to come.
        """
        self._offset = time.monotonic() - self._started
        self._response = Response(self.request.response_bytes_max)
        self._head_arrived = head_arrived
        self._blocked = self._ready = self._starved = False
        self.curl = curl = pycurl.Curl()
        self._set_rules(curl)
        self._set_request(curl)
        self._set_callbacks(curl)
        return curl

    def died_unheard(self, code: int) -> bool:
        """Whether a kept connection turned out dead before a byte of answer came.

        That is a race between its closing and our sending, not a failure of the receiver: it may
        be tried once more, on a new connection (`open` sees to that). libcurl does so itself, but
        gives up when it finds five dead ones in a row.
        """
        assert self.curl is not None
        reused = self._ready and not self.curl.getinfo(pycurl.NUM_CONNECTS)
        died = code in _DIED and reused and not self._response.begun and not self._fresh
        self._fresh = self._fresh or died
        return died

    def answer(self, code: int) -> Answer:
        """What came of it. `code` is libcurl's verdict, of no account once there is a status."""
        response, curl = self._response, self.curl
        assert curl is not None, "an answer is made before the handle is released"
        timings = self._timings(curl)
        if response.status is None or self._blocked:
            return Answer(None, self._error(code, curl), timings=timings)
        peer = curl.getinfo(pycurl.PRIMARY_IP)
        return Answer(response.status, None, response.headers(), bytes(response.body), timings, peer)

    def release(self) -> None:
        """Free the handle, in the thread that made it. Callbacks and exchange hold each other: cut that."""
        if self.curl is not None:
            self.curl.close()
            self.curl = None

    def _error(self, code: int, curl: pycurl.Curl) -> str:
        if self._blocked:
            return "blocked_address"
        if self._starved:
            return "transport"
        return self._response.fault or error_name(code, curl, ready=self._ready)

    def _timings(self, curl: pycurl.Curl) -> dict[str, float]:
        reached = {name: curl.getinfo(info) for name, info in _TIMINGS.items()}
        if not self._response.begun:  # libcurl notes its own end as the first byte
            del reached["first_byte"]
        since = {name: self._offset + seconds for name, seconds in reached.items() if seconds}
        return {"name_lookup": self._lookup_seconds, **since, "total": time.monotonic() - self._started}

    def _set_rules(self, curl: pycurl.Curl) -> None:
        curl.setopt(pycurl.NOSIGNAL, 1)  # timers must not raise SIGALRM: this is not the main thread
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.PROXY, "")  # not even the environment's; netrc and cookies are off by default
        curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        curl.setopt(pycurl.PATH_AS_IS, 1)  # "/a/../b" goes out as it was written
        curl.setopt(pycurl.MAXAGE_CONN, _IDLE_SECONDS)
        curl.setopt(pycurl.USERAGENT, self._rules.user_agent)
        if self._rules.ca_file is not None:
            curl.setopt(pycurl.CAINFO, self._rules.ca_file)

    def _set_request(self, curl: pycurl.Curl) -> None:
        request = self.request
        left = request.timeout_seconds - self._offset
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.HTTPHEADER, self._header_lines)
        curl.setopt(pycurl.TIMEOUT_MS, _milliseconds(left))
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(self._rules.connect_timeout_seconds))
        curl.setopt(pycurl.FRESH_CONNECT, int(self._fresh))
        if self._pin is not None:
            curl.setopt(pycurl.RESOLVE, [self._pin])
        if request.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif request.method != "GET":
            curl.setopt(pycurl.POSTFIELDS, request.body)
            curl.setopt(pycurl.CUSTOMREQUEST, request.method)

    def _set_callbacks(self, curl: pycurl.Curl) -> None:
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.SOCKOPTFUNCTION, self._adopt_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._take_body)

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        """The veto. One refused address condemns the whole name, whatever else it resolves to."""
        if self._blocked or refused(address.addr[0], self._rules.allow_networks):
            self._blocked = True
            return pycurl.SOCKET_BAD
        try:
            self._socket = socket.socket(address.family, address.socktype, address.protocol)
        except OSError:  # no descriptor left: our fault, not the receiver's
            self._starved = True
            return pycurl.SOCKET_BAD
        return self._socket

    def _adopt_socket(self, descriptor: int, _purpose: int) -> Any:
        """What libcurl got is a duplicate: ours is of no more use, and dup() dropped close-on-exec."""
        self._socket.close()
        os.set_inheritable(descriptor, False)
        return pycurl.SOCKOPT_OK

    def _before_request(self, *_: object) -> Any:
        """The connection stands. Beside it another address of the same name may have been refused."""
        self._ready = True
        return pycurl.PREREQFUNC_ABORT if self._blocked else pycurl.PREREQFUNC_OK

    def _take_header(self, line: bytes) -> int | None:
        undecided = self._response.status is None
        if not self._response.take_header(line):
            return 0
        if undecided and self._response.status is not None:
            self._head_arrived(self)
        return None  # to pycurl: all of it was taken

    def _take_body(self, chunk: bytes) -> int | None:
        return None if self._response.take_body(chunk) else 0


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))  # 0 means no limit to libcurl


def _header_lines(request: Outbound) -> list[bytes]:
    """Raises ValueError for what would not stay one header: a line break in a value is another header."""
    names = {name.lower() for name, _ in request.headers}
    lines = [b"Expect:"]  # no waiting for "100 Continue" before a large body
    if "content-type" not in names:
        lines.append(b"Content-Type:")  # libcurl would call it a form
    for name, value in request.headers:
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise ValueError(f"not a header: {name!r}")
        lines.append(f"{name}: {value}".encode("latin-1") if value.strip() else f"{name};".encode())
    return lines
