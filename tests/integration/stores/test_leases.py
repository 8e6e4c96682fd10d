"""Leases are durations of the machine, not times of day."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import COMPLETED, LEASE_SECONDS, retried

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.contracts.store import StoreBench


@pytest.mark.parametrize("hours", [-1000, 1000])
async def test_a_jump_of_the_wall_clock_neither_ends_nor_prolongs_a_lease(
    bench: StoreBench, hours: int
) -> None:
    claimed = await bench.start()
    await bench.plan("https://hooks.example/a")
    await bench.take(1)
    bench.clock.jump(timedelta(hours=hours))
    bench.clock.advance(LEASE_SECONDS - 0.001)

    assert await bench.store.expired(10) == []
    assert await bench.store.free_expired_deliveries() == 0
    bench.clock.advance(0.001)
    assert [lapsed.lease for lapsed in await bench.store.expired(10)] == [claimed.lease]
    assert await bench.store.free_expired_deliveries() == 1


async def test_leases_of_a_machine_that_was_restarted_can_be_voided(bench: StoreBench, path: Path) -> None:
    """Monotonic time starts over: the old lease lies hours in the new boot's future."""
    bench.clock.advance(100_000.0)
    claimed = await bench.start()
    await bench.plan("https://hooks.example/a")
    (delivery,) = await bench.take(1)
    await bench.store.close()  # type: ignore[attr-defined]

    store = await SqliteStore.open(path, clock=ManualClock(), wake=bench.wake)
    try:
        assert await store.expired(10) == []
        assert await store.void_leases() == 1
        assert await store.void_delivery_leases() == 1
        assert [lapsed.lease for lapsed in await store.expired(10)] == [claimed.lease]
        assert await store.take_over(claimed.lease, retried(crash=True))
        assert not await store.settle(claimed.lease, COMPLETED)
        assert (await store.delivery_counts())["pending"] >= 1
        assert delivery.attempt == 1
    finally:
        await store.close()
