"""The asyncio side of the transport."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from tempa.adapters.senders.curl.exchange import Exchange, Rules
from tempa.adapters.senders.curl.multi import CurlThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.addresses import Network
    from tempa.webhooks.ports import Answer, Outbound

_CLOSE_SECONDS = 2.0  # libcurl waits for name lookups under way, up to 10 s; the process need not


class CurlSender:
    """A `Sender` on libcurl, with a thread of its own.

    It vetoes addresses when it connects, never follows redirects, takes no proxy from the
    environment, and bounds the whole exchange by the request's `timeout_seconds`. The outcome is
    decided when the head of the answer is whole: its body is kept up to the request's
    `response_bytes_max`, may take `body_seconds` more, and may be cut, slow or wrong about its length.
    Connections are kept and used again.

    Args:
        allow_networks: What may be called besides public addresses.
        connect_timeout_seconds: For name lookup, TCP and TLS together.
        user_agent: The `User-Agent` header.
        body_seconds: How long a body may take once the status is known. One second is enough for
            the excerpt of a webhook's answer; a sender of RPC calls gives its own deadline.
        ca_file: The certificates to trust; the system's if None.
    """

    def __init__(
        self,
        allow_networks: Sequence[Network] = (),
        *,
        connect_timeout_seconds: float = 3.0,
        user_agent: str = "Tempa",
        body_seconds: float = 1.0,
        ca_file: str | None = None,
    ) -> None:
        trusted = ca_file or ssl.get_default_verify_paths().cafile
        self._rules = Rules(tuple(allow_networks), connect_timeout_seconds, user_agent, trusted)
        self._thread = CurlThread(body_seconds)

    async def send(self, request: Outbound) -> Answer:
        """Send, and say what came of it.

        Canceling the awaiting task drops the exchange and its connection. Raises ValueError for a
        header that is none, RuntimeError if the sender is or gets closed: neither is the
        receiver's doing.
        """
        exchange = Exchange(request, self._rules, asyncio.get_running_loop().create_future())
        self._thread.submit(exchange)
        try:
            return await exchange.future
        except asyncio.CancelledError:
            self._thread.withdraw(exchange)
            raise

    async def close(self) -> None:
        """Give up what is under way and end the thread. Idempotent."""
        self._thread.close()
        await asyncio.to_thread(self._thread.join, _CLOSE_SECONDS)
