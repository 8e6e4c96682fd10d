"""The store's contract, over every implementation."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.store import (
    JobStoreContract,
    KeyStoreContract,
    StoreBench,
    WebhookStoreContract,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# Flushing to a real disk is tested in tests/integration/stores; here it would only cost half a minute.
MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh, private folder in it


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


@asynccontextmanager
async def on_sqlite(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    folder = request.getfixturevalue("folder")
    store = await SqliteStore.open(folder / "tempa.db", clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake)
    await store.close()


@asynccontextmanager
async def on_postgres(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    address = Address(request.getfixturevalue("database"))
    store = await PostgresStore.open(address, clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake)
    await store.close()


@pytest.fixture(params=[on_sqlite, on_postgres], ids=["sqlite", "postgres"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[StoreBench]:
    async with request.param(request) as made:
        yield made


class TestJobStore(JobStoreContract):
    pass


class TestWebhookStore(WebhookStoreContract):
    pass


class TestKeyStore(KeyStoreContract):
    pass
