"""What every part of the store stands on: the named queries, the way to write, the way to read, the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tempa.adapters.stores.sql import load_queries
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from tempa.adapters.stores.sqlite.readers import Readers
    from tempa.adapters.stores.sqlite.writer import Done, Writer
    from tempa.core.clock import Clock

T = TypeVar("T")

SQL: Any = load_queries("sqlite3")


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
