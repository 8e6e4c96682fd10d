"""A copy of the database while it is written, and what files its rows speak of."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.adapters.stores.sql import decode
from tempa.adapters.stores.sqlite.access import SQL
from tempa.adapters.stores.sqlite.connections import open_reader
from tempa.adapters.stores.sqlite.schema import version_of
from tempa.core.errors import StoreUnavailable
from tempa.jobs.inputs import key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_POSITIONS = 10**12  # a month of 400,000 events a second; 9,000 restores stay below 2**53
_PAGES = 2500  # 10 MB between two words on how far it is


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a row of the copy speaks of: `owner` is the job's or the upload's id."""

    owner: str
    key: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a copy holds."""

    schema: int
    counts: Mapping[str, int]
    files: tuple[KeptFile, ...]


def copy_database(source: Path, target: Path, told: Callable[[int, int], None]) -> None:
    """Copy `source`, as it stands now, into a new file that is one whole database, checked and flushed.

    A server may write meanwhile: it waits for nothing, and the copy has none of it. `told` hears how many
    pages of how many are done. Raises StoreUnavailable when the source cannot be read or is damaged.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(open_reader(source)) as reader, closing(_connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")  # flushed once, when it is whole
            _copy(reader, copy, told)
            copy.execute("PRAGMA journal_mode = DELETE")  # a backup is one file, with no log beside it
            _check(source, copy)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{source} cannot be copied: {error}") from error
    _flush(target)


def contents(path: Path) -> Contents:
    """What the copy at `path` holds."""
    with closing(open_reader(path)) as connection:
        return Contents(
            schema=version_of(connection),
            counts=dict(SQL.backup_counts(connection)),
            files=(*_results(connection), *_inputs(connection), *_uploads(connection)),
        )


def skip_positions(path: Path) -> None:
    """Make a restored database give no position of the feed that was given after its backup was made.

    Else a reader that had gone further would hear nothing until the feed has come to where it is.
    """
    with closing(_connect(path)) as connection:
        SQL.skip_positions(connection, by=_POSITIONS)


def _copy(reader: sqlite3.Connection, copy: sqlite3.Connection, told: Callable[[int, int], None]) -> None:
    # Without a snapshot that is held, each commit of the server's would begin the copy anew.
    reader.execute("BEGIN")
    version_of(reader)  # the first look takes it
    reader.backup(copy, pages=_PAGES, progress=lambda _, left, total: told(total - left, total))
    reader.execute("ROLLBACK")


def _check(source: Path, copy: sqlite3.Connection) -> None:
    (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreUnavailable(f"{source} is damaged: {found}. A copy of it would be no backup.")


def _results(connection: sqlite3.Connection) -> Iterator[KeptFile]:
    for row in SQL.kept_results(connection):
        for artifact in decode(row["result"])["artifacts"]:
            yield KeptFile(row["id"], artifact["key"], artifact["size_bytes"], artifact["sha256"])


def _inputs(connection: sqlite3.Connection) -> Iterator[KeptFile]:
    for row in SQL.kept_inputs(connection):
        for name, reference in decode(row["inputs"]).items():
            if "sha256" in reference:
                yield KeptFile(
                    row["id"], key(row["id"], name), reference["file_size_bytes"], reference["sha256"]
                )


def _uploads(connection: sqlite3.Connection) -> Iterator[KeptFile]:
    for row in SQL.kept_uploads(connection):
        yield KeptFile(row["id"], row["key"], row["size_bytes"], row["sha256"])


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
