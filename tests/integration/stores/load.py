"""A process that admits jobs as fast as it can and prints the ids it was told are on disk.

python load.py DATABASE
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import COMPLETED, a_key, a_new_job

WRITERS = 16


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def main(path: Path) -> None:
    clock = SystemClock()
    store = await SqliteStore.open(path, clock=clock, wake=InProcessWake())

    async def admit(writer: int) -> None:
        for number in itertools.count():
            key = f"w{writer}-{number}"
            admission = await store.admit(a_new_job(clock, key=a_key(key)))
            tell("admitted", admission.job.id, key)

    async def work() -> None:
        while True:
            for claimed in await store.claim("w1", ["cpu"], 8, 30.0):
                if await store.settle(claimed.lease, COMPLETED):
                    tell("completed", claimed.job.id, str(claimed.lease.epoch))

    await asyncio.gather(work(), *(admit(writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
