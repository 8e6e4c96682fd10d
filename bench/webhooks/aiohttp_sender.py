"""The `Sender` port on aiohttp: what it takes to keep the deadline, the excerpt and the timings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import aiohttp  # type: ignore[import-not-found]  # in an environment of its own

from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    from tempa.webhooks.ports import Outbound

_KEPT_SECONDS = 60


class AiohttpSender:
    """No veto on addresses, no names of errors: less than ours does, so that the ratio flatters aiohttp."""

    def __init__(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        )

    async def send(self, request: Outbound) -> Answer:
        """Send, and say what came of it."""
        started = time.monotonic()
        try:
            async with self._session.request(
                request.method,
                request.url,
                data=request.body,
                headers=request.headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=request.timeout_seconds),
            ) as response:
                first_byte = time.monotonic() - started
                body = await response.content.read(request.response_bytes_max)
                headers = {name.lower(): value for name, value in response.headers.items()}
                timings = {"first_byte": first_byte, "total": time.monotonic() - started}
                return Answer(response.status, None, headers, body, timings)
        except TimeoutError:
            return Answer(None, "timeout", timings={"total": time.monotonic() - started})
        except aiohttp.ClientError:
            return Answer(None, "transport", timings={"total": time.monotonic() - started})

    async def close(self) -> None:
        """Close what is open."""
        await self._session.close()
