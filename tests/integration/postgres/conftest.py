"""Two stores on one database, as two processes have them, and a plain connection beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from tempa.adapters.stores.postgres import access
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.store import StoreBench
from tests.integration.postgres.sessions import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    connection = await asyncpg.connect(database)
    yield Session(connection)
    await connection.close()


@pytest.fixture
async def here(database: str) -> AsyncIterator[PostgresStore]:
    """A store that goes by the database's clock."""
    store = await PostgresStore.open(Address(database), wake=InProcessWake())
    yield store
    await store.close()


@pytest.fixture
async def there(database: str) -> AsyncIterator[PostgresStore]:
    """Another process's."""
    store = await PostgresStore.open(Address(database), wake=InProcessWake())
    yield store
    await store.close()


@pytest.fixture
def no_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Victims of a deadlock are not tried again: whoever gets into one is told, and the test sees it."""
    monkeypatch.setattr(access, "is_victim", lambda error: False)


@pytest.fixture
async def benches(database: str) -> AsyncIterator[tuple[StoreBench, StoreBench]]:
    """Two stores whose time passes when it is told to."""
    clock = ManualClock()
    wakes = InProcessWake(clock), InProcessWake(clock)
    stores = [await PostgresStore.open(Address(database), wake=wake, clock=clock) for wake in wakes]
    first, second = (
        StoreBench(store=store, clock=clock, wake=wake) for store, wake in zip(stores, wakes, strict=True)
    )
    yield first, second
    for store in stores:
        await store.close()
