"""Tempa on SQLite: embedded, synchronous = FULL, one process."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from bench.queue.phases import main
from bench.queue.systems.tempa import Opened, phases
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def opening(url: str) -> AsyncIterator[Opened]:
    """`url` is a file's path."""
    wake = InProcessWake()
    store = await SqliteStore.open(Path(url), clock=SystemClock(), wake=wake)
    try:
        yield Opened(store, wake)
    finally:
        await store.close()


if __name__ == "__main__":
    main(phases(opening, alone=True), uvloop.run)
