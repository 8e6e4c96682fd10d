"""A store of its own for each test, and what looks behind it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.schema import prepare
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.store import StoreBench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tempa.db"


@pytest.fixture
async def bench(path: Path) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    store = await SqliteStore.open(path, clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake)
    await store.close()


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a fresh database, with its guards on."""
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = on")
        connection.row_factory = sqlite3.Row
        yield connection
