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
        asyncio.create_task(_watch_client(receive, over)),
        asyncio.create_task(_watch_server(stopping, over)),
    ]
    try:
        yield over
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _watch_client(receive: Receive, over: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # what is left of the request's body
    over.set()


async def _watch_server(stopping: asyncio.Event, over: asyncio.Event) -> None:
    await stopping.wait()
    over.set()
