"""How many pages each statement of a store reads, as the server itself tells of the plans it ran.

By `auto_explain` and not by EXPLAIN: so the statements are the real ones, with the plans that the server
keeps for a prepared statement after its fifth run.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from tempa.adapters.stores.postgres.access import SQL
from tempa.adapters.stores.postgres.connections import SESSION
from tempa.adapters.stores.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TELL_PLANS = """
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_analyze = on;
set auto_explain.log_buffers = on;
set auto_explain.log_timing = off;
set auto_explain.log_format = json;
set auto_explain.log_level = notice;
"""

NAMES = {
    getattr(SQL, name).sql.strip(): name for name in SQL.available_queries if not name.endswith("_cursor")
}


class Gauge:
    """A pool of one connection that keeps what the server tells of each named query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._free = asyncio.Lock()
        self.pages: dict[str, list[int]] = defaultdict(list)
        self.scans: dict[str, list[str]] = defaultdict(list)
        connection.add_log_listener(self._hear)

    @classmethod
    async def on(cls, url: str, *, pooled: bool = False) -> Gauge:
        """With a session as the store has it: of its own, or one of a pooler's, which has no settings."""
        connection = await asyncpg.connect(url, server_settings={} if pooled else SESSION)
        await connection.execute(TELL_PLANS)
        return cls(connection)

    @asynccontextmanager
    async def acquire(self, **_options: Any) -> AsyncIterator[Any]:
        async with self._free:
            yield self._connection

    async def close(self) -> None:
        await self._connection.close()

    def _hear(self, _connection: Any, message: Any) -> None:
        _, found, document = str(message.message).partition("plan:\n")
        told: dict[str, Any] = json.loads(document) if found else {"Query Text": ""}
        name = NAMES.get(told["Query Text"].strip())
        if name is not None:
            root = told["Plan"]
            self.pages[name].append(root["Shared Hit Blocks"] + root["Shared Read Blocks"])
            self.scans[name].append(_scans(root))

    def forget(self) -> None:
        """What was told so far: the next reading begins here."""
        self.pages.clear()
        self.scans.clear()

    def most(self) -> dict[str, int]:
        """The most pages that a run of each query has read."""
        return {name: max(pages) for name, pages in self.pages.items()}


def _scans(node: dict[str, Any]) -> str:
    """The scans of a plan, with what they go by."""
    by = node.get("Index Name") or node.get("Relation Name")
    own = f"{node['Node Type']} {by}" if by and "Scan" in node["Node Type"] else ""
    return "; ".join(filter(None, [own, *(_scans(child) for child in node.get("Plans", ()))]))


def store_on(gauge: Gauge) -> PostgresStore:
    """A store that goes by the database's clock."""
    return PostgresStore(gauge, lambda *_: None, None)
