"""Somebody else's session on the same database, and transactions that stand open."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.postgres.connections import BEGIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.adapters.stores.postgres.store import PostgresStore

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Session:
    """A session of somebody else on the same database."""

    connection: Any

    async def value(self, query: str, *parameters: Any) -> Any:
        return await self.connection.fetchval(query, *parameters)

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        return list(await self.connection.fetch(query, *parameters))

    async def run(self, script: str) -> None:
        await self.connection.execute(script)

    async def until_blocked(self, count: int) -> None:
        """Wait until so many others wait for locks: it is asked over and over, which is no sleep."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.value(BLOCKED) < count:  # noqa: ASYNC110 - nobody tells of a lock
                await asyncio.sleep(0)

    async def hold(self, row_id: str, table: str = "job") -> None:
        """Begin a transaction, with this row locked: whoever writes it stands in line."""
        await self.run("begin")
        await self.value(f"select id from {table} where id = $1 for update", row_id)  # noqa: S608

    async def find_by_index(self) -> None:
        """Later sessions join row by row, in the order given: as with tables larger than these."""
        for setting in ("enable_hashjoin", "enable_mergejoin", "enable_seqscan"):
            await self.run(
                "do $$ begin "
                f"execute format('alter database %I set {setting} = off', current_database()); "
                "end $$"
            )

    async def in_line(self, *commands: Awaitable[Any]) -> list[Any]:
        """Start these one by one, each behind the lock that is held; let go, and gather their answers."""
        tasks = []
        for count, command in enumerate(commands, start=1):
            tasks.append(asyncio.ensure_future(command))
            await self.until_blocked(count)
        await self.run("commit")
        async with asyncio.timeout(PATIENCE_SECONDS):
            return list(await asyncio.gather(*tasks, return_exceptions=True))


# Not pg_stat_activity: inside a transaction that shows the moment of the first look for ever.
BLOCKED = "select count(*) from pg_locks where not granted"


@asynccontextmanager
async def unfinished(store: PostgresStore, flow: Flow[Any]) -> AsyncIterator[Any]:
    """A transaction of the store in which `flow` has run, open while inside: its answer."""
    async with store._transaction(BEGIN) as connection:
        yield await store._run(connection, flow)
