"""The store's contract, over every implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(params=["sqlite"])
async def bench(tmp_path: Path) -> AsyncIterator[StoreBench]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=wake)
    yield StoreBench(store=store, clock=clock, wake=wake)
    await store.close()


class TestJobStore(JobStoreContract):
    pass


class TestWebhookStore(WebhookStoreContract):
    pass


class TestKeyStore(KeyStoreContract):
    pass
