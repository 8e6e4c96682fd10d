"""Tempa on PostgreSQL. The worker that picks up is another process: rings travel by NOTIFY."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import uvloop

from bench.queue.phases import main
from bench.queue.systems.tempa import Opened, phases
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.schema import prepare
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.postgres import PostgresWake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def opening(url: str) -> AsyncIterator[Opened]:
    """`url` leads to a database, empty or Tempa's own."""
    await prepare(url)
    wake = PostgresWake(url)
    store = await PostgresStore.open(Address(url), wake=wake)
    try:
        async with wake.running():
            yield Opened(store, wake)
    finally:
        await store.close()


if __name__ == "__main__":
    main(phases(opening, alone=False), uvloop.run)
