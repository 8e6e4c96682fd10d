"""A backup of an embedded server's directory, taken beside the server while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa import __version__
from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.adapters.stores.migrations import SCHEMA_VERSION, newer
from tempa.adapters.stores.sqlite.backup import contents, copy_database
from tempa.adapters.stores.sqlite.lock import DirectoryInUse, DirectoryLock
from tempa.core.clock import SystemClock, rfc3339
from tempa.wiring.backup_files import (
    Absent,
    BackupFault,
    Entry,
    FolderWriter,
    Manifest,
    TarWriter,
    flush_folder,
)
from tempa.wiring.credentials import FILE_NAME as CREDENTIALS_FILE
from tempa.wiring.deployment import DATABASE_FILE, artifacts_root, database_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tempa.adapters.stores.sqlite.backup import KeptFile
    from tempa.wiring.backup_files import Writer
    from tempa.wiring.settings import Settings

ARTIFACTS_FOLDER = "artifacts"
_PACKED = (".gz", ".tgz", ".zip", ".zst", ".xz", ".bz2")


Told = Callable[[str, int, int], None]
"""Hears how far it is: of which stage ("database", in pages, or "files"), how many of how many are done."""


def back_up(settings: Settings, data_dir: Path, target: Path, told: Told) -> Manifest:
    """Copy database, credentials and files to `target`: a new folder, or a file if it ends in .tar.

    The database is copied first, then what its rows speak of: every row has its files, unless they were
    deleted meanwhile. Whole or not at all: it is renamed into place when it is on the disk.

    Raises `BackupFault`, and `StoreUnavailable` when the database cannot be read.
    """
    if settings.store.shared:
        raise BackupFault(SHARED)
    _check_free(target)
    with _beside_no_starting_server(data_dir), _passing_folder(target) as passing:
        database = passing / DATABASE_FILE
        copy_database(
            database_file(settings, data_dir), database, lambda done, of: told("database", done, of)
        )
        with contextlib.closing(_writer(target, passing)) as writer:
            manifest = _fill(writer, settings, data_dir, database, told)
            writer.finish(manifest).rename(target)
        flush_folder(target.parent)
    return manifest


SHARED = (
    "The store is PostgreSQL (store.url), which has backups of its own: make one with pg_dump, and copy the "
    "data directory (credentials.json and artifacts/) after it. docs/howto/backup.md has the steps."
)


def _writer(target: Path, passing: Path) -> Writer:
    return TarWriter(passing) if target.suffix == ".tar" else FolderWriter(passing)


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise BackupFault(f"{target} is there already. Name a place that is not: a backup replaces nothing.")
    if not target.parent.is_dir():
        raise BackupFault(f"There is no folder {target.parent} to put the backup into.")
    if target.suffix in _PACKED:
        raise BackupFault(f"A backup is a folder or a .tar, not a {target.suffix}. Pack it afterwards.")


@contextlib.contextmanager
def _beside_no_starting_server(data_dir: Path) -> Iterator[None]:
    """With the directory's lock, or beside the server that has it: SQLite lets others read."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(DirectoryInUse):
            stack.enter_context(DirectoryLock(data_dir))
        yield


@contextlib.contextmanager
def _passing_folder(target: Path) -> Iterator[Path]:
    """Where the backup grows, beside its place; gone afterwards, whatever comes of it."""
    passing = target.with_name(f".{target.name}.{os.getpid()}.partial")
    passing.mkdir(mode=0o700)
    try:
        yield passing
    finally:
        shutil.rmtree(passing, ignore_errors=True)  # renamed, it is no longer there: fine


def _fill(writer: Writer, settings: Settings, data_dir: Path, database: Path, told: Told) -> Manifest:
    held = contents(database)
    if held.schema > SCHEMA_VERSION:
        raise newer(str(database_file(settings, data_dir)), held.schema)
    own = [
        _add(writer, DATABASE_FILE, database),
        _add(writer, CREDENTIALS_FILE, data_dir / CREDENTIALS_FILE),
    ]
    files = _add_files(writer, artifacts_root(settings, data_dir), held.files, told)
    return Manifest(
        version=__version__,
        schema_version=held.schema,
        made_at=rfc3339(SystemClock().now()),
        counts=dict(held.counts),
        files=(*own, *files.entries),
        missing=tuple(files.missing),
        damaged=tuple(files.damaged),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """What became of the files that rows speak of."""

    entries: list[Entry] = field(default_factory=list)
    missing: list[Absent] = field(default_factory=list)
    damaged: list[Absent] = field(default_factory=list)


def _add_files(writer: Writer, root: Path, wanted: Sequence[KeptFile], told: Told) -> _Files:
    files = _Files()
    places = asyncio.run(_places(LocalArtifacts(root), wanted))
    for done, (kept, place) in enumerate(zip(wanted, places, strict=True), start=1):
        absent = Absent(owner=kept.owner, key=kept.key)
        entry = None if place is None else _add_if_there(writer, root, place)
        if entry is None:
            files.missing.append(absent)
        else:
            files.entries.append(entry)
            if entry.sha256 != kept.sha256:
                files.damaged.append(absent)
        told("files", done, len(wanted))
    return files


async def _places(artifacts: LocalArtifacts, wanted: Sequence[KeptFile]) -> list[Path | None]:
    return [await artifacts.path(kept.key) for kept in wanted]


def _add_if_there(writer: Writer, root: Path, place: Path) -> Entry | None:
    """Under its place below the root. None: it was deleted since the database was copied."""
    try:
        return _add(writer, f"{ARTIFACTS_FOLDER}/{place.relative_to(root)}", place)
    except FileNotFoundError:
        return None


def _add(writer: Writer, name: str, source: Path) -> Entry:
    digest = writer.add(name, source)
    return Entry(name=name, size_bytes=digest.size_bytes, sha256=digest.sha256)
