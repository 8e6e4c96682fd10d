"""What every part of the store stands on: the named queries, the way to write, the way to read, the time."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from aiosql.adapters.sqlite3 import SQLite3Adapter

from tempa.adapters.stores.sql import load_queries
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from tempa.adapters.stores.sqlite.readers import Readers
    from tempa.adapters.stores.sqlite.writer import Done, Writer
    from tempa.core.clock import Clock

T = TypeVar("T")


class _RowAdapter(SQLite3Adapter):
    """aiosql's own takes the one value of a row only from tuples, lists and dicts, not from sqlite3.Row."""

    def select_value(
        self,
        conn: sqlite3.Connection,
        query_name: str,  # noqa: ARG002 - the signature is aiosql's
        sql: str,
        parameters: Any,
    ) -> Any:
        with closing(conn.execute(sql, parameters)) as cursor:
            row = cursor.fetchone()
        return None if row is None else row[0]


SQL: Any = load_queries(_RowAdapter)


class Access:
    """Base of the store's parts. Each part is the commands of one subject."""

    def __init__(self, writer: Writer, readers: Readers, clock: Clock) -> None:
        self._writer, self._readers, self._clock = writer, readers, clock

    async def _write(self, transaction: Callable[[sqlite3.Connection], Done[T]]) -> T:
        return await self._writer.do(transaction)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        return await self._readers.do(query)

    def _now(self) -> int:
        """Unix milliseconds. Read inside a transaction, so that times follow the order of commits."""
        return to_ms(self._clock.now())

    def _tick(self) -> int:
        """Monotonic milliseconds, for leases: a jump of the wall clock ends none and prolongs none."""
        return int(self._clock.monotonic() * 1000)
