"""procrastinate: an asynchronous application, its own pool and worker."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import procrastinate  # type: ignore[import-not-found]  # in an environment of its own (peers.py)

from bench.calls import by_clients, every
from bench.queue.phases import Starts, main

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bench.queue.phases import Options

    Go = Callable[[], Awaitable[None]]

CONCURRENCY = 32
POOL = 40  # its default is 4, and its worker takes one connection for LISTEN


class Application:
    """An app with the one task."""

    def __init__(self, options: Options) -> None:
        connector = procrastinate.PsycopgConnector(conninfo=options.url, min_size=1, max_size=POOL)
        self.app = procrastinate.App(connector=connector)
        self.starts = Starts(options.jobs)

        @self.app.task(name="noop")  # type: ignore[untyped-decorator]
        async def noop(n: int) -> None:
            self.starts.began(n)

        self.defer: Callable[[int], Awaitable[object]] = lambda number: noop.defer_async(n=number)
        self.fill: Callable[[], Awaitable[object]] = lambda: noop.batch_defer_async(
            *({"n": number} for number in range(options.jobs))
        )

    async def make_schema(self) -> None:
        """In an empty database."""
        if not await self.app.check_connection_async():
            await self.app.schema_manager.apply_schema_async()

    async def work(self, *, wait: bool) -> None:
        """Until the queue is empty, or for ever."""
        await self.app.run_worker_async(
            concurrency=CONCURRENCY, wait=wait, install_signal_handlers=False, listen_notify=True
        )


async def admission(options: Options, go: Go) -> Mapping[str, Any]:
    made = Application(options)
    async with made.app.open_async():
        await made.make_schema()
        await by_clients(options.clients, options.clients, made.defer)
        await go()
        return {"seconds": await by_clients(options.clients, options.jobs, made.defer)}


async def drain(options: Options, go: Go) -> Mapping[str, Any]:
    made = Application(options)
    async with made.app.open_async():
        await made.make_schema()
        await made.fill()
        await go()
        start = time.perf_counter()
        await made.work(wait=False)
        await made.starts.all()
        return {"seconds": time.perf_counter() - start}


async def pickup(options: Options, go: Go) -> Mapping[str, Any]:
    made = Application(options)
    async with made.app.open_async():
        await go()
        return {"calls": await every(options.every_seconds, options.jobs, made.defer), "starts": None}


async def hear(options: Options, go: Go) -> Mapping[str, Any]:
    made = Application(options)
    async with made.app.open_async():
        await made.make_schema()
        worker = asyncio.create_task(made.work(wait=True))
        await go()
        at = await made.starts.all()
        worker.cancel()
        await asyncio.wait([worker])
        return {"starts": at}


if __name__ == "__main__":
    main({"admission": admission, "drain": drain, "pickup": pickup, "hear": hear})
