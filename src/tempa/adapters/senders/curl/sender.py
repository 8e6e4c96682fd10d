"""The asyncio side of the transport."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import ssl
import time
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tempa.adapters.senders.curl.exchange import Exchange, Rules
from tempa.adapters.senders.curl.multi import CurlThread
from tempa.adapters.senders.curl.names import Names, system_addresses
from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.adapters.senders.curl.exchange import Sink
    from tempa.adapters.senders.curl.names import Place
    from tempa.core.addresses import Network
    from tempa.webhooks.ports import Outbound

_logger = logging.getLogger(__name__)

_URL = re.compile(r"https?://(?![/?#])[!-~]+", re.IGNORECASE)  # libcurl reads more, and guesses
_CLOSE_SECONDS = 5.0  # it takes milliseconds; a process that stops must not hang for it
_RESTART_SECONDS = 1.0  # between two threads, should one after the other break


class CurlSender:
    """A `Sender` on libcurl, with a thread of its own. Belongs to one event loop.

    It judges the addresses of a name, and again the one it connects to; never follows redirects,
    takes no proxy from the environment, and bounds the whole exchange by the request's
    `timeout_seconds`. The outcome is decided when the head of the answer is whole: the body is kept
    up to the request's `response_bytes_max`, may take `body_seconds` more, and may be cut, slow or
    wrong about its length. Connections are kept and used again.

    Args:
        allow_networks: What may be called besides public addresses.
        connect_timeout_seconds: For the name lookup; then again for TCP and TLS together.
        user_agent: The `User-Agent` header.
        body_seconds: How long a body may take once the status is known. One second is enough for
            the excerpt of a webhook's answer; a sender of RPC calls gives its own deadline.
        ca_file: The certificates to trust; the system's if None.
        resolve: How names become addresses; called in threads, raises OSError if there are none.
    """

    def __init__(
        self,
        allow_networks: Sequence[Network] = (),
        *,
        connect_timeout_seconds: float = 3.0,
        user_agent: str = "Tempa",
        body_seconds: float = 1.0,
        ca_file: str | None = None,
        resolve: Callable[[str], list[str]] = system_addresses,
    ) -> None:
        trusted = ca_file or ssl.get_default_verify_paths().cafile
        rules = Rules(tuple(allow_networks), connect_timeout_seconds, user_agent, body_seconds, trusted)
        self._connect_timeout_seconds = connect_timeout_seconds
        self._names = Names(rules.allow_networks, resolve)
        self._rules = rules
        self._thread = CurlThread(rules)
        self._restarted_at = -math.inf
        self._closed = False

    async def send(self, request: Outbound, sink: Sink | None = None) -> Answer:
        """Send, and say what came of it. A `sink` gets the body, whole.

        Canceling the awaiting task drops the exchange and its connection. Raises ValueError for a
        header that is none, RuntimeError if the sender is or gets closed: neither is the
        receiver's doing.
        """
        assert request.timeout_seconds > 0, "every exchange has a deadline"
        started = time.monotonic()
        target = _target(request.url)
        if target is None:
            return Answer(None, "invalid_url")
        host, port = target
        patience = min(self._connect_timeout_seconds, request.timeout_seconds)
        place = self._names.known(host) or await self._names.look_up(host, patience)
        if place is None or place.blocked:
            timings = {"total": time.monotonic() - started}
            return Answer(None, "blocked_address" if place else "dns", timings=timings)
        future = asyncio.get_running_loop().create_future()
        return await self._run(Exchange(request, future, started, _pin(host, port, place), sink))

    async def close(self) -> None:
        """Give up what is under way and end the thread. Idempotent."""
        self._closed = True
        self._names.close()
        self._thread.close()
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)

    async def _run(self, exchange: Exchange) -> Answer:
        if self._closed:
            raise RuntimeError("the sender is closed")
        if not self._thread.submit(exchange) and not self._submit_anew(exchange):
            return Answer(None, "transport", timings={"total": time.monotonic() - exchange.started})
        thread = self._thread
        try:
            return await exchange.future
        except asyncio.CancelledError:
            thread.withdraw(exchange)
            raise

    def _submit_anew(self, exchange: Exchange) -> bool:
        """The thread has ended of a fault: give the exchange to a new one, once a second at most."""
        now = time.monotonic()
        if now - self._restarted_at < _RESTART_SECONDS:
            return False
        self._restarted_at = now
        try:
            self._thread = CurlThread(self._rules)
        except Exception:  # no descriptor, no thread, no memory
            _logger.exception("the transport could not be started anew")
            return False
        return self._thread.submit(exchange)


@lru_cache(maxsize=1024)
def _target(url: str) -> tuple[str, int] | None:
    """Host and port of a URL that we and libcurl read the same way; None for any other."""
    if _URL.fullmatch(url) is None:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # an unclosed bracket, a port beyond 65535
        return None
    return (host, port or (443 if parts.scheme == "https" else 80)) if host else None


def _pin(host: str, port: int, place: Place) -> str | None:
    """The judged addresses of a name, in libcurl's spelling: it forgets them again after a minute (`+`)."""
    if place.addresses is None:
        return None
    listed = ",".join(f"[{one}]" if ":" in one else one for one in place.addresses)
    return f"+{host}:{port}:{listed}"
