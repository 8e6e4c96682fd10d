"""Many processes, one PostgreSQL. Each holds nothing that another could not take over.

The data directory is shared too: credentials and files lie in it, on a file system that all see.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.schema import prepare
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.postgres import PostgresWake
from tempa.core.ids import new_id
from tempa.wiring.credentials import load_credentials
from tempa.wiring.deployment import Deployment, artifacts_root

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tempa.wiring.settings import Settings


@contextlib.asynccontextmanager
async def open_distributed(settings: Settings, data_dir: Path) -> AsyncGenerator[Deployment, None]:
    """Migrate the database if that is due (one process does), and join those who work on it."""
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
    credentials = load_credentials(data_dir)
    direct = settings.store.listen_url or settings.store.url
    await prepare(direct)
    wake = PostgresWake(direct)
    address = Address(settings.store.url, pooled=bool(settings.store.listen_url))
    store = await PostgresStore.open(address, wake=wake)
    try:
        async with wake.running():
            yield Deployment(store, wake, credentials, _artifacts(artifacts_root(settings, data_dir)))
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _artifacts(root: Path) -> AsyncGenerator[LocalArtifacts, None]:
    artifacts = LocalArtifacts(root, instance=new_id("wrk"))
    await asyncio.to_thread(artifacts.open)
    yield artifacts
