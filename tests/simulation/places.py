"""Where a store's data lies while stores come and go."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tests.services import fresh_name

if TYPE_CHECKING:
    from tempa.testing.clock import ManualClock
    from tempa.testing.contracts.bench import Store
    from tempa.testing.postgres import PostgresCluster

MEMORY = Path("/dev/shm")  # noqa: S108 - fresh, private folders in it


class Place(Protocol):
    """Where a store's data lies from one opening to the next: a file, or a database."""

    @property
    def shared(self) -> bool: ...  # leases on the wall clock, nothing is void after a restart
    async def open(self, clock: ManualClock) -> Store: ...
    def close(self) -> None: ...


class File:
    """An embedded store's."""

    shared = False

    def __init__(self) -> None:
        where = MEMORY if MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="tempa-", dir=where))

    async def open(self, clock: ManualClock) -> Store:
        wake = InProcessWake(clock)
        return await SqliteStore.open(self._folder / "tempa.db", clock=clock, wake=wake, readers=1)

    def close(self) -> None:
        shutil.rmtree(self._folder)


class Database:
    """A shared store's."""

    shared = True

    def __init__(self, cluster: PostgresCluster, template: str) -> None:
        self._cluster, self._name = cluster, fresh_name()
        cluster.execute(f"create database {self._name} template {template} strategy file_copy")

    async def open(self, clock: ManualClock) -> Store:
        address = Address(self._cluster.url(self._name))
        return await PostgresStore.open(address, clock=clock, wake=InProcessWake(clock))

    def close(self) -> None:
        self._cluster.execute(f"drop database {self._name}")
