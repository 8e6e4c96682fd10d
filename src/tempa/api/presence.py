"""Waiting on someone's behalf: over when the client leaves or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

POLL_SECONDS = 1.0  # the truth, should a ring be lost


@asynccontextmanager
async def presence(receive: Receive, stopping: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """An event that is set once there is no point in waiting any longer."""
    over = asyncio.Event()
    watches = [
        asyncio.create_task(_set_after(over, _departure(receive))),
        asyncio.create_task(_set_after(over, stopping.wait())),
    ]
    try:
        yield over
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # what is left of the request's body
