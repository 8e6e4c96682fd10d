"""A backup becomes a server's data directory again: all of it is verified first, then put into place."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.adapters.stores.migrations import SCHEMA_VERSION, newer
from tempa.adapters.stores.sqlite.backup import skip_positions
from tempa.adapters.stores.sqlite.lock import DirectoryLock
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.jobs.model import Released
from tempa.wiring.backup import ARTIFACTS_FOLDER, SHARED
from tempa.wiring.backup_files import (
    BackupFault,
    flush_folder,
    flush_tree,
    open_backup,
    read_manifest,
    write_flushed,
)
from tempa.wiring.credentials import FILE_NAME as CREDENTIALS_FILE
from tempa.wiring.deployment import DATABASE_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tempa.wiring.backup import Told
    from tempa.wiring.backup_files import Entry, Manifest, Reader
    from tempa.wiring.settings import Settings

_LOCK_FILE = "lock"
_BATCH = 100
_PASSING = ".restoring"
_ASIDE = "before-restore-"


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put into place, and where that lies now which was there before."""

    manifest: Manifest
    moved_aside: Path | None


def restore(settings: Settings, source: Path, data_dir: Path, told: Told, *, force: bool = False) -> Restored:
    """Fill `data_dir` from the backup at `source`. With `force` what is there is moved aside, not deleted.

    The directory's lock is held, so that no server starts on half of it. Raises `BackupFault`,
    `DirectoryInUse` and `SchemaMismatch`; nothing was changed then.
    """
    _check_plain(settings)
    with open_backup(source) as backup:
        manifest = read_manifest(backup, source)
        _check_whole(manifest, source)
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with DirectoryLock(data_dir):
            old = _entries(data_dir)
            _check_room(data_dir, old, force=force)
            passing = data_dir / _PASSING
            shutil.rmtree(passing, ignore_errors=True)  # of a restore that was killed
            try:
                _unpack(backup, manifest, source, passing, told)
                aside = _switch(data_dir, passing, old)
            finally:
                shutil.rmtree(passing, ignore_errors=True)
    return Restored(manifest, aside)


def _check_plain(settings: Settings) -> None:
    if settings.store.shared:
        raise BackupFault(SHARED)
    elsewhere = [
        f"{name} ({url})"
        for name, url in (("store.url", settings.store.url), ("artifacts.url", settings.artifacts.url))
        if url
    ]
    if elsewhere:
        raise BackupFault(
            f"A restore fills a data directory, and {' and '.join(elsewhere)} points elsewhere. Restore "
            "without that setting into a fresh directory, then move tempa.db or artifacts/ where it points."
        )


def _check_whole(manifest: Manifest, source: Path) -> None:
    if manifest.schema_version > SCHEMA_VERSION:
        raise newer(f"The backup {source}", manifest.schema_version)
    names = [entry.name for entry in manifest.files]
    if len(set(names)) != len(names) or not {DATABASE_FILE, CREDENTIALS_FILE} <= set(names):
        raise BackupFault(f"{source} is damaged: its manifest does not name what a backup holds.")
    own = {DATABASE_FILE, CREDENTIALS_FILE}
    if any(name not in own and not name.startswith(f"{ARTIFACTS_FOLDER}/") for name in names):
        raise BackupFault(f"{source} is damaged: its manifest names what no backup holds.")


def _entries(data_dir: Path) -> list[Path]:
    """What was there, but for the lock and for what restores have left."""
    return sorted(
        path
        for path in data_dir.iterdir()
        if path.name not in {_LOCK_FILE, _PASSING} and not path.name.startswith(_ASIDE)
    )


def _check_room(data_dir: Path, old: Sequence[Path], *, force: bool) -> None:
    if old and not force:
        raise BackupFault(
            f"{data_dir} is not empty ({', '.join(path.name for path in old[:4])}). Name another directory, "
            "or say --force: what is there is then moved aside, into a folder in it."
        )
    mounted = [path.name for path in old if path.is_mount()]
    if mounted:
        raise BackupFault(f"{data_dir}: {', '.join(mounted)} is a mount point and cannot be moved aside.")


def _unpack(backup: Reader, manifest: Manifest, source: Path, passing: Path, told: Told) -> None:
    passing.mkdir(mode=0o700)
    (passing / ARTIFACTS_FOLDER).mkdir(mode=0o700)
    for done, entry in enumerate(manifest.files, start=1):
        _unpack_one(backup, entry, source, passing)
        told("files", done, len(manifest.files))
    skip_positions(passing / DATABASE_FILE)
    asyncio.run(_hand_back(passing / DATABASE_FILE))
    if os.geteuid() == 0:
        _give_to_owner(passing)
    flush_tree(passing)


async def _hand_back(database: Path) -> None:
    """Queue what ran when the backup was made, as a drain does: its workers did not crash.

    Else the server's start would count each as one whose worker was lost, and its next crash as the last.
    """
    store = await SqliteStore.open(database, clock=SystemClock(), wake=InProcessWake())
    try:
        await store.void_leases()
        while running := await store.expired(_BATCH):
            for claimed in running:
                await store.take_over(claimed.lease, Released())
    finally:
        await store.close()


def _unpack_one(backup: Reader, entry: Entry, source: Path, passing: Path) -> None:
    try:
        with backup.open(entry.name) as content:
            digest = write_flushed(passing / entry.name, content)
    except KeyError:
        raise BackupFault(f"{source} is not whole: {entry.name} is missing. Nothing was restored.") from None
    if (digest.size_bytes, digest.sha256) != (entry.size_bytes, entry.sha256):
        raise BackupFault(
            f"{source} is damaged: {entry.name} is not what was backed up. Nothing was restored."
        )


def _give_to_owner(passing: Path) -> None:
    """Run by root, for a server that runs as somebody else: everything is the directory's owner's."""
    owner = passing.parent.stat()
    for path in (passing, *passing.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def _switch(data_dir: Path, passing: Path, old: Sequence[Path]) -> Path | None:
    """The old aside, the new into place; by renames alone. The database goes last and comes first.

    A crash in between leaves a part aside and the rest in `.restoring`; the same restore, once more and
    with --force, makes it whole.
    """
    aside = _move_aside(data_dir, sorted(old, key=lambda path: path.name.startswith(DATABASE_FILE)))
    for path in sorted(passing.iterdir(), key=lambda path: path.name != DATABASE_FILE):
        path.rename(data_dir / path.name)
    flush_folder(data_dir)
    return aside


def _move_aside(data_dir: Path, old: Sequence[Path]) -> Path | None:
    if not old:
        return None
    stamp = SystemClock().now().strftime("%Y%m%dT%H%M%S.%fZ")
    aside = data_dir / f"{_ASIDE}{stamp}"
    aside.mkdir(mode=0o700)
    for path in old:
        path.rename(aside / path.name)
    flush_folder(aside)
    return aside
