"""Re-drive and discard of many letters: in slices, so that others may write in between."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands import dead_letters
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import StoreBench
from tempa.testing.contracts.samples import ACCOUNT, EXHAUSTED, an_outcome
from tempa.webhooks.model import DeadFilter, DeliveryStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SHM = Path("/dev/shm")  # noqa: S108 - a fresh, private folder in it
MEMORY = _SHM if _SHM.is_dir() else None
LETTERS = 5


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    monkeypatch.setattr(dead_letters, "LETTERS_PER_TRANSACTION", 2)
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY) as name:
        clock = ManualClock()
        store = await SqliteStore.open(Path(name) / "tempa.db", clock=clock, wake=InProcessWake(clock))
        yield store
        await store.close()


@pytest.fixture
async def letters(store: SqliteStore) -> list[str]:
    """Five dead letters, oldest first."""
    clock = ManualClock()
    bench = StoreBench(store=store, clock=clock, wake=InProcessWake(clock))
    made = []
    for number in range(LETTERS):
        made += await bench.deliveries_to(f"https://hooks.example/{number}")
        (claimed,) = await bench.take()
        assert await store.settle_delivery(claimed, an_outcome(), EXHAUSTED)
    return made


async def test_a_redrive_is_paced_on_across_its_slices(store: SqliteStore, letters: list[str]) -> None:
    before = store.writes.commands

    assert await store.redrive(ACCOUNT, DeadFilter(delivery_ids=tuple(letters)), 0.5) == LETTERS

    found = [await store.delivery(ACCOUNT, letter) for letter in letters]
    due = [one[0].next_attempt_at for one in found if one]
    assert due[0]
    assert due == [due[0] + timedelta(seconds=0.5 * place) for place in range(LETTERS)]
    assert store.writes.commands - before == 3


async def test_a_discard_goes_in_slices_too(store: SqliteStore, letters: list[str]) -> None:
    before = store.writes.commands

    assert await store.discard(ACCOUNT, DeadFilter(delivery_ids=tuple(letters)), "gone") == LETTERS

    found = [await store.delivery(ACCOUNT, letter) for letter in letters]
    assert [one[0].status for one in found if one] == [DeliveryStatus.CANCELED] * LETTERS
    assert store.writes.commands - before == 3
