"""A process whose files may not grow for a while: prints what its store said before, during and after.

python small_disk.py DATABASE
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.errors import StoreUnavailable
from tempa.testing.contracts.samples import a_new_job


def set_limit(size_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))


async def main(path: Path) -> None:
    clock = SystemClock()
    store = await SqliteStore.open(path, clock=clock, wake=InProcessWake())
    told: dict[str, list[str]] = {"acknowledged": [], "refused": [], "errors": []}

    async def admit() -> None:
        new = a_new_job(clock, work={"filler": "x" * 20_000})
        try:
            await store.admit(new)
        except StoreUnavailable as error:
            told["refused"].append(new.id)
            told["errors"].append(str(error))
        else:
            told["acknowledged"].append(new.id)

    await admit()
    set_limit(path.with_name(f"{path.name}-wal").stat().st_size + 100_000)
    while len(told["refused"]) < 30:
        await asyncio.gather(*(admit() for _ in range(10)))
    set_limit(resource.RLIM_INFINITY)
    await asyncio.gather(*(admit() for _ in range(10)))
    told["last"] = told["acknowledged"][-10:]
    await store.close()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
