"""Claim and complete, one job after the other: how long each takes, and many at once to age a store."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING

from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import COMPLETED, LANE, a_new_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.jobs.model import Claimed
    from tempa.jobs.ports import JobStore

ACCOUNTS = ("acme", "globex", "initech", "umbrella")  # several: fairness has somebody to choose among
BATCH = 64
_LEASE_SECONDS = 60.0


async def admit(store: JobStore, jobs: int, accounts: Sequence[str] = ACCOUNTS) -> None:
    """Jobs that wait, of the accounts in turn."""
    clock = SystemClock()
    for first in range(0, jobs, 256):
        numbers = range(first, min(first + 256, jobs))
        await asyncio.gather(
            *(store.admit(a_new_job(clock, account=accounts[n % len(accounts)])) for n in numbers)
        )


async def claim(store: JobStore, limit: int) -> list[Claimed]:
    """Up to `limit`."""
    return await store.claim("bench", (LANE,), limit, _LEASE_SECONDS)


async def complete(store: JobStore, claimed: Claimed) -> None:
    """Under its fence."""
    assert await store.settle(claimed.lease, COMPLETED)


async def p50s_ms(ours: JobStore, theirs: JobStore, jobs: int) -> tuple[float, float]:
    """The medians of claim + complete in two stores, with one job at a time.

    By turns, cycle by cycle: what else the machine does meanwhile, it does to both.
    """
    both = (ours, theirs)
    for store in both:
        await admit(store, jobs)
    took = [[await _cycle_ms(store) for store in both] for _ in range(jobs)]
    return statistics.median(one for one, _ in took), statistics.median(other for _, other in took)


async def _cycle_ms(store: JobStore) -> float:
    start = time.perf_counter()
    (claimed,) = await claim(store, 1)
    await complete(store, claimed)
    return (time.perf_counter() - start) * 1000


async def age(store: JobStore, jobs: int) -> None:
    """Put so many jobs through their whole life."""
    for first in range(0, jobs, 2000):
        await admit(store, min(2000, jobs - first))
        while claimed := await claim(store, BATCH):
            await asyncio.gather(*(complete(store, one) for one in claimed))
