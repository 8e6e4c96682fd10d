"""pycurl's multi interface and nothing else: keep-alive, so many at a time, the answers thrown away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pycurl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tempa.webhooks.ports import Outbound

IN_FLIGHT = 64
_PATIENCE_SECONDS = 1.0


class BareLoop:
    """Sends requests as `multi.perform` and `multi.select` would have it."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IN_FLIGHT)
        self._idle = [_handle() for _ in range(IN_FLIGHT)]
        self._under_way = 0
        self._answered = 0

    def send(self, requests: Sequence[Outbound], make: Callable[[Outbound], Outbound]) -> int:
        """All of them, each as `make` has it; returns how many were answered 200."""
        waiting = (make(request) for request in requests)
        self._fill(waiting)
        self._multi.perform()
        while self._under_way:
            self._multi.select(_PATIENCE_SECONDS)
            self._multi.perform()
            self._collect()
            self._fill(waiting)
        return self._answered

    def _fill(self, waiting: Iterator[Outbound]) -> None:
        while self._idle and (request := next(waiting, None)):
            curl = self._idle.pop()
            curl.setopt(pycurl.URL, request.url)
            lines = ["Expect:", *(f"{name}: {value}" for name, value in request.headers)]
            curl.setopt(pycurl.HTTPHEADER, lines)
            curl.setopt(pycurl.POSTFIELDS, request.body)
            self._multi.add_handle(curl)
            self._under_way += 1

    def _collect(self) -> None:
        _, done, failed = self._multi.info_read()
        for curl in done:
            self._answered += curl.getinfo(pycurl.RESPONSE_CODE) == 200
        for curl in (*done, *(curl for curl, _, _ in failed)):
            self._multi.remove_handle(curl)
            self._idle.append(curl)
            self._under_way -= 1


def _handle() -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.PROXY, "")
    curl.setopt(pycurl.TIMEOUT_MS, 10_000)
    curl.setopt(pycurl.WRITEFUNCTION, lambda _: None)
    return curl
