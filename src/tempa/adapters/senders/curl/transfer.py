"""A libcurl handle that runs exchanges, one after the other, with its veto on addresses."""

from __future__ import annotations

import math
import os
import socket
import time
from typing import TYPE_CHECKING, Any

import pycurl

from tempa.adapters.senders.curl.certificates import expires_at
from tempa.adapters.senders.curl.errors import error_name
from tempa.adapters.senders.curl.response import Response
from tempa.core.addresses import refused
from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.adapters.senders.curl.exchange import Exchange, Rules

_IDLE_SECONDS = 60  # a kept connection older than this is not used again
TRICKLE_BYTES_PER_SECOND = 1024
_DIED = (pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR, pycurl.E_GOT_NOTHING)


class Transfer:
    """Lives in the thread that owns libcurl. Handles are used again: making one costs 10 us of 30.

    `head_arrived` is called when the status is decided and only the body is still to come.
    """

    def __init__(self, rules: Rules, head_arrived: Callable[[Exchange], None]) -> None:
        self._rules = rules
        self._head_arrived = head_arrived
        self.curl = pycurl.Curl()
        self._set_rules()
        self._set_callbacks()

    def load(self, exchange: Exchange) -> None:
        """Make ready for `exchange`, with what is left of its time. Nothing stays of the one before."""
        self._exchange = exchange
        self._offset_seconds = time.monotonic() - exchange.started
        self._response = Response(exchange.request.response_bytes_max, exchange.sink)
        self._blocked = self._ready = self._starved = False
        self._set_request(exchange)

    def unload(self) -> None:
        """Let go of the exchange: a handle that waits for the next must not keep 256 KiB of body alive."""
        del self._exchange, self._response
        self.curl.setopt(pycurl.POSTFIELDS, b"")

    def died_unheard(self, code: int) -> bool:
        """Whether a kept connection turned out dead before a byte of answer came.

        That is a race between its closing and our sending, not a failure of the receiver: it may
        be tried once more, on a new connection. libcurl does so itself, but gives up when it finds
        five dead ones in a row.
        """
        if code not in _DIED or self._exchange.fresh or self._response.begun:
            return False
        return self._ready and not self.curl.getinfo(pycurl.NUM_CONNECTS)

    def answer(self, code: int) -> Answer:
        """What came of it. `code` is libcurl's verdict, of no account once there is a status."""
        response, timings = self._response, self._timings()
        if response.status is None or self._blocked:
            return Answer(None, self._error(code), timings=timings)
        if self._exchange.sink is not None:
            self._exchange.sink.end(whole=code == pycurl.E_OK)
        return Answer(
            response.status,
            None,
            response.headers(),
            bytes(response.body),
            timings,
            self.curl.getinfo(pycurl.PRIMARY_IP),
            expires_at(self.curl) if "tls" in timings else None,
        )

    def close(self) -> None:
        """Free the handle. It and this object hold each other by the callbacks: that ends here."""
        self.curl.close()

    def _error(self, code: int) -> str:
        if self._blocked:
            return "blocked_address"
        if self._starved:
            return "transport"
        return self._response.fault or error_name(code, self.curl, ready=self._ready)

    def _timings(self) -> dict[str, float]:
        """A phase that was not reached, or not needed on a kept connection, is left out."""
        curl, offset = self.curl, self._offset_seconds
        timings = {"name_lookup": self._exchange.lookup_seconds}
        if connect := curl.getinfo(pycurl.CONNECT_TIME):
            timings["connect"] = offset + connect
        if tls := curl.getinfo(pycurl.APPCONNECT_TIME):
            timings["tls"] = offset + tls
        if self._response.begun:  # else libcurl notes its own end as the first byte
            timings["first_byte"] = offset + curl.getinfo(pycurl.STARTTRANSFER_TIME)
        timings["total"] = time.monotonic() - self._exchange.started
        return timings

    def _set_rules(self) -> None:
        curl, rules = self.curl, self._rules
        curl.setopt(pycurl.NOSIGNAL, 1)  # timers must not raise SIGALRM: this is not the main thread
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.PROXY, "")  # not even the environment's; netrc and cookies are off by default
        curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        curl.setopt(pycurl.PATH_AS_IS, 1)  # "/a/../b" goes out as it was written
        curl.setopt(pycurl.MAXAGE_CONN, _IDLE_SECONDS)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(rules.connect_timeout_seconds))
        curl.setopt(pycurl.USERAGENT, rules.user_agent)
        curl.setopt(pycurl.OPT_CERTINFO, 1)
        if rules.ca_file is not None:
            curl.setopt(pycurl.CAINFO, rules.ca_file)

    def _set_callbacks(self) -> None:
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._adopt_socket)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._take_body)

    def _set_request(self, exchange: Exchange) -> None:
        curl, request = self.curl, exchange.request
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.HTTPHEADER, exchange.header_lines)
        curl.setopt(pycurl.TIMEOUT_MS, _milliseconds(request.timeout_seconds - self._offset_seconds))
        trickle_seconds = exchange.sink.trickle_seconds if exchange.sink else 0
        curl.setopt(pycurl.LOW_SPEED_LIMIT, TRICKLE_BYTES_PER_SECOND if trickle_seconds else 0)
        curl.setopt(pycurl.LOW_SPEED_TIME, trickle_seconds)
        curl.setopt(pycurl.FRESH_CONNECT, int(exchange.fresh))
        curl.setopt(pycurl.RESOLVE, [exchange.pin] if exchange.pin else [])
        curl.setopt(pycurl.HTTPGET, 1)  # forgets the body, or its absence, of the exchange before
        if request.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif request.method != "GET":
            curl.setopt(pycurl.POSTFIELDS, request.body)
        curl.setopt(pycurl.CUSTOMREQUEST, request.method)

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        """The veto: whatever the name resolved to before, this is the address that is connected to."""
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
        """The connection stands. Another address, tried beside it, may have been refused meanwhile."""
        self._ready = True
        return pycurl.PREREQFUNC_ABORT if self._blocked else pycurl.PREREQFUNC_OK

    def _take_header(self, line: bytes) -> int | None:
        undecided = self._response.status is None
        if not self._response.take_header(line):
            return 0
        if undecided and self._response.status is not None:
            self._head_arrived(self._exchange)
        return None  # to pycurl: all of it was taken

    def _take_body(self, chunk: bytes) -> int | None:
        return None if self._response.take_body(chunk) else 0


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))  # 0 means no limit to libcurl
