"""What tests of sources share: an ear at a source, a listener into a real store, servers that misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any, cast

from websockets.asyncio.server import ServerConnection, serve

from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.core.clock import SystemClock
from tempa.core.retry import RetryPolicy
from tempa.settlement.listen import Listener
from tempa.settlement.model import Treasury
from tempa.settlement.ports import Gap, GapReason, PushSource, Told
from tempa.settlement.watch import TreasuryWatch

PATIENCE_SECONDS = 15.0
AT_ONCE = RetryPolicy(base_seconds=0.01, cap_seconds=0.05)


class Ear:
    """One connection of a source: what it tells, in order. `ended` once it is over."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self._queue: asyncio.Queue[Told | None] = asyncio.Queue()

    def hear(self, told: Told | None) -> None:
        self._queue.put_nowait(told)

    async def next(self) -> Told:
        """The next thing; fails if the connection ended instead."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            told = await self._queue.get()
        assert told is not None, f"it ended after {self.told[-3:]}"
        self.told.append(told)
        return told

    async def until(self, is_it: Callable[[Told], object]) -> Told:
        """The first that is it; what comes before stands in `told`."""
        while not is_it(told := await self.next()):
            pass
        return told

    async def gap(self, reason: GapReason) -> Gap:
        """The next gap of this reason."""
        return cast(Gap, await self.until(lambda told: isinstance(told, Gap) and told.reason is reason))

    async def end(self) -> Told:
        """The last thing before the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (told := await self._queue.get()) is not None:
                self.told.append(told)
        return self.told[-1]


@asynccontextmanager
async def ear_at(
    source: PushSource, addresses: list[str], from_slot: int | None = None
) -> AsyncIterator[Ear]:
    ear = Ear()

    async def hear() -> None:
        async with aclosing(source.listen(addresses, from_slot)) as telling:
            async for told in telling:
                ear.hear(told)
        ear.hear(None)

    task = asyncio.create_task(hear())
    try:
        yield ear
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            raise error


class Sweeps:
    """Counts what a listener asks for."""

    def __init__(self) -> None:
        self.count = 0
        self._asked = asyncio.Event()

    def ask(self) -> None:
        self.count += 1
        self._asked.set()

    async def next(self) -> None:
        """Wait for one that was not waited for yet."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._asked.wait()
        self._asked.clear()


@asynccontextmanager
async def listening(
    source: PushSource, store: SqliteStore, treasury: Treasury, sweeps: Sweeps
) -> AsyncIterator[Listener]:
    """The role, into a real store; until the first connection stands, and its sweep is asked for."""
    stop = asyncio.Event()
    listener = Listener(
        source=source,
        store=store,
        watch=_knowing(treasury),
        on_gap=sweeps.ask,
        clock=SystemClock(),
        meter=PrometheusMeter(),
        rng=Random(7),
        retries=AT_ONCE,
        gap_seconds=0.01,
    )
    task = asyncio.create_task(listener.run(stop))
    try:
        await sweeps.next()
        yield listener
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


def _knowing(treasury: Treasury) -> TreasuryWatch:
    """A watch that has found the treasury."""

    class Asked:
        def __init__(self) -> None:
            self.treasury = treasury

    watch = TreasuryWatch(quorum=cast(Any, Asked()), store=cast(Any, None), wallet="", mints=())
    watch.ready.set()
    return watch


Converse = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def node_that(converse: Converse, **settings: Any) -> AsyncIterator[str]:
    """A WebSocket server of a test's own; its URL, with a key in it."""
    async with serve(converse, "127.0.0.1", 0, compression=None, **settings) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/?api-key=sesame"


async def subscribed(connection: ServerConnection, refused: frozenset[str] = frozenset()) -> None:
    """Answer subscriptions, slots and two addresses, but for what is refused: a method, or an address."""
    for number in range(3):
        asked = json.loads(await connection.recv())
        about = {asked["method"], *(asked["params"][0]["mentions"] if asked["params"] else ())}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if about & refused:
            answer["error"] = {"code": -32602, "message": "too many subscriptions"}
        else:
            answer["result"] = number + 1
        await connection.send(json.dumps(answer))


def logs_message(signature: Any, slot: Any = 5) -> str:
    value = {"signature": signature, "err": None, "logs": []}
    return notification("logsNotification", {"context": {"slot": slot}, "value": value})


def slot_message(slot: int) -> str:
    return notification("slotNotification", {"slot": slot, "parent": slot - 1, "root": slot - 32})


def notification(method: str, result: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": {"result": result, "subscription": 1}})
