"""The embedded store: jobs, deliveries, payments and keys in one SQLite file."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Self

from tempa.adapters.stores.commands import Commands
from tempa.adapters.stores.sqlite.access import SqliteAccess
from tempa.adapters.stores.sqlite.clock_jumps import ClockJumpsPart
from tempa.adapters.stores.sqlite.connections import open_reader, open_writer
from tempa.adapters.stores.sqlite.direct import DirectPart
from tempa.adapters.stores.sqlite.readers import Readers
from tempa.adapters.stores.sqlite.ready import ReadyIndex
from tempa.adapters.stores.sqlite.schema import prepare
from tempa.adapters.stores.sqlite.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.adapters.stores.commands.flow import WriteCounts
    from tempa.core.clock import Clock
    from tempa.core.work import Wake

READERS = 4  # reads take well under a millisecond; more threads would only fight for the interpreter


class SqliteStore(SqliteAccess, DirectPart, ClockJumpsPart, Commands):
    """`JobStore`, `WebhookStore`, `SettlementStore`, `KeyStore` and `AccountStore` in one file.

    Only one process may have it open: hold the directory's `DirectoryLock` first, and call
    `void_leases` and `void_delivery_leases` before anything is claimed. It goes by the clock of this
    machine: whoever opens it tells it when that is set back (`set_back`).
    """

    ready = ReadyIndex()

    @classmethod
    async def open(cls, path: Path, *, clock: Clock, wake: Wake, readers: int = READERS) -> Self:
        """Create or migrate the file if need be, and start the threads. Raises SchemaMismatch."""
        await asyncio.to_thread(prepare, path)
        return cls(
            Writer(partial(open_writer, path), wake.ring),
            Readers(partial(open_reader, path), readers),
            clock,
        )

    async def close(self) -> None:
        """Finish what was asked for, then stop. Everything asked afterwards raises StoreUnavailable."""
        await self._outcomes.finish()
        await self._calls.finish()
        await self._postings.finish()
        await self._readers.close()
        await self._writer.close()

    @property
    def writes(self) -> WriteCounts:
        """Commands and commits so far."""
        return self._writer.counts
