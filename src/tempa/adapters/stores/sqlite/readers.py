"""Reading, in a few threads of its own. Readers never wait for the writer, nor it for them (WAL)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tempa.adapters.stores.sqlite.connections import is_fault
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

T = TypeVar("T")


class Readers:
    """A bounded pool: a thread a connection, and a connection a thread, opened when first needed."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], count: int) -> None:
        self._connect = connect
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="tempa-store-reader")

    async def do(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` in a reader's thread, on one consistent view of what is committed."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, self._run, query)
        except RuntimeError as error:
            raise StoreUnavailable("The store is closed.") from error
        return await future

    async def close(self) -> None:
        """Finish what is being read, then close. Idempotent."""
        await asyncio.to_thread(self._pool.shutdown)
        while self._opened:
            self._opened.pop().close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._connection()
            connection.execute("BEGIN")  # one snapshot, however many statements the query has
            try:
                return query(connection)
            finally:
                connection.execute("ROLLBACK")
        except Exception as error:
            if is_fault(error):
                raise StoreUnavailable(f"The store cannot be read: {error}") from error
            raise

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect()
            self._opened.append(connection)
        return connection
