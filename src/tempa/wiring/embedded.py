"""One process, no services: SQLite and local files in a directory whose lock it holds."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.stores.sqlite.lock import DirectoryLock
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.crash import crash_point
from tempa.wiring.clock_watch import ClockWatch, catch_up
from tempa.wiring.credentials import load_credentials
from tempa.wiring.deployment import Deployment, artifacts_root, database_file

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tempa.wiring.settings import Settings


@contextlib.asynccontextmanager
async def open_embedded(settings: Settings, data_dir: Path) -> AsyncGenerator[Deployment, None]:
    """Take the directory's lock and open its store, every lease of a dead server voided."""
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    with DirectoryLock(data_dir):
        crash_point("start.locked")
        credentials = load_credentials(data_dir)
        wake = InProcessWake()
        clock = SystemClock()
        store = await SqliteStore.open(database_file(settings, data_dir), clock=clock, wake=wake)
        try:
            await store.void_leases()
            await store.void_delivery_leases()
            await store.free_inbox()
            crash_point("start.voided")
            await catch_up(store)
            watch = ClockWatch(store=store, clock=clock)
            artifacts = _artifacts(artifacts_root(settings, data_dir))
            yield Deployment(store, wake, credentials, artifacts, upkeep=(watch,))
        finally:
            await store.close()


@contextlib.asynccontextmanager
async def _artifacts(root: Path) -> AsyncGenerator[LocalArtifacts, None]:
    """One server a folder, whatever its data directory: each would sweep away what only the other knows."""
    artifacts = LocalArtifacts(root)
    with DirectoryLock(await asyncio.to_thread(artifacts.make_own)):
        await asyncio.to_thread(artifacts.open)
        yield artifacts
