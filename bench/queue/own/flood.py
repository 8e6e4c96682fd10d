"""One job of an account behind another's flood: how many slots must come free before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.queue.own.cycles import admit, claim, complete
from bench.queue.services import Files, postgres
from bench.queue.systems import tempa_postgres, tempa_sqlite
from bench.ratios import Goal
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.jobs.ports import JobStore

GOAL = Goal(2, at_least=False)
SLOTS = 4


async def flood(folder: Path, jobs: int) -> list[Row]:
    """On both stores."""
    files = Files(folder)
    with files.fresh() as path:
        async with tempa_sqlite.opening(path) as opened:
            embedded = await _slots_freed(opened.store, jobs)
    with postgres() as cluster, cluster.fresh() as url:
        async with tempa_postgres.opening(url) as opened:
            shared = await _slots_freed(opened.store, jobs)
    what = f"slots freed until 1 job behind {jobs:,} starts"
    return [Row(f"{what}, SQLite", [embedded], GOAL), Row(f"{what}, PostgreSQL", [shared], GOAL)]


async def _slots_freed(store: JobStore, jobs: int) -> int:
    await admit(store, jobs, accounts=("flood",))
    running = await claim(store, SLOTS)
    await admit(store, 1, accounts=("alone",))
    for freed in range(1, jobs):
        await complete(store, running.pop(0))
        running += await claim(store, 1)
        if running[-1].job.account == "alone":
            return freed
    raise AssertionError("the one job was never started")
