"""Data directories with something in them, and what backups of them hold, read by other means than ours."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.ids import new_id
from tempa.jobs.model import Result, StoredFile
from tempa.jobs.ports import MadeFile
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import StoreBench
from tempa.testing.contracts.samples import ACCOUNT, COMPLETED
from tempa.wiring.backup import back_up
from tempa.wiring.restore import restore
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tempa.wiring.backup_files import Manifest
    from tempa.wiring.restore import Restored

SETTINGS = load_settings(environment={})
FORMS = ["backup", "backup.tar"]


def unheard(_stage: str, _done: int, _total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class Directory:
    """A data directory with a result, an upload, and what is nobody's."""

    path: Path
    job_id: str
    files: dict[str, bytes]  # by their place below the directory

    def back_up(self, target: Path, told: Callable[[str, int, int], None] = unheard) -> Manifest:
        return back_up(SETTINGS, self.path, target, told)

    def place(self, ending: str) -> Path:
        """Its one file of that ending."""
        (found,) = (name for name in self.files if name.endswith(ending))
        return self.path / found


async def lived_in(path: Path) -> Directory:
    clock = ManualClock()
    store = await SqliteStore.open(path / "tempa.db", clock=clock, wake=InProcessWake(clock))
    artifacts = LocalArtifacts(path / "artifacts")
    artifacts.open()
    bench = StoreBench(store=store, clock=clock, wake=InProcessWake(clock))
    claimed = await bench.start()
    folder = artifacts.scratch("made")
    (folder / "model.step").write_bytes(b"solid\n" * 1000)
    made = (MadeFile("model.step", "step", "step", "model/step"),)
    kept = await artifacts.keep(f"{claimed.job.id}.a1", folder, made)
    assert await store.settle(
        claimed.lease, replace(COMPLETED, result=Result(artifacts=kept, measurements={}))
    )
    upload = new_id("file")
    stored = await artifacts.receive(upload, _one(b"input"), 100)
    until = clock.now() + timedelta(days=7)
    await store.add_file(
        StoredFile(
            id=upload,
            account=ACCOUNT,
            key=stored.key,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            created_at=clock.now(),
            expires_at=until,
        )
    )
    await store.close()
    orphan = artifacts.scratch("left-by-a-crash") / "half.step"
    orphan.write_bytes(b"half")
    named = [await artifacts.path(kept[0].key), await artifacts.path(upload)]
    files = {str(place.relative_to(path)): place.read_bytes() for place in named if place}
    files["credentials.json"] = (path / "credentials.json").read_bytes()
    return Directory(path, claimed.job.id, files)


async def _one(content: bytes) -> AsyncIterator[bytes]:
    yield content


def content(backup: Path) -> dict[str, bytes]:
    """Every file of a backup, read by other means than ours."""
    if backup.is_dir():
        return {str(p.relative_to(backup)): p.read_bytes() for p in backup.rglob("*") if p.is_file()}
    with tarfile.open(backup) as tar:
        return {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]


def rewrite(backup: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """The same backup with other content."""
    files = content(backup)
    change(files)
    shutil.rmtree(backup) if backup.is_dir() else backup.unlink()
    if backup.suffix != ".tar":
        for name, data in files.items():
            (backup / name).parent.mkdir(parents=True, exist_ok=True)
            (backup / name).write_bytes(data)
        return
    folder = backup.with_suffix(".unpacked")
    unpack(folder, files)
    with tarfile.open(backup, "w") as tar:
        for name in files:
            tar.add(folder / name, name)


def unpack(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def restored(backup: Path, target: Path, *, force: bool = False) -> Restored:
    return restore(SETTINGS, backup, target, unheard, force=force)


def rows(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [line for line in connection.iterdump() if not line.startswith('INSERT INTO "feed"')]


def position(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("select position from feed").fetchone()[0])


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
