"""Makes a database file ready: new, migrated, or refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from tempa.adapters.stores.migrations import (
    FOLDER,
    SCHEMA_VERSION,
    SchemaMismatch,
    due,
    newer,
    scripts,
    statements,
)
from tempa.adapters.stores.sqlite.connections import is_fault, open_writer
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tempa.adapters.stores.migrations import Script

_DAMAGED = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_SQLITE_MIN = (3, 37, 0)  # STRICT tables


def prepare(path: Path) -> None:
    """Create the database, or bring it up to `SCHEMA_VERSION`. Raises SchemaMismatch, StoreUnavailable."""
    if sqlite3.sqlite_version_info < _SQLITE_MIN:
        needed = ".".join(map(str, _SQLITE_MIN))
        raise SchemaMismatch(
            f"Tempa needs SQLite {needed} or newer; this Python has {sqlite3.sqlite_version}."
        )
    _create_private(path)
    try:
        _open_prepared(path)
    except sqlite3.DatabaseError as error:
        raise _in_words(path, error) from error


def _in_words(path: Path, error: sqlite3.DatabaseError) -> Exception:
    """What ails the file, or the place where it lies; what is a fault of ours stays as it is."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _DAMAGED:
        return SchemaMismatch(
            f"{path} is not a database, or a damaged one: {error}. Restore it from a backup; or move it "
            "away with its -wal and -shm, and the next start makes an empty one."
        )
    if code is None or is_fault(error):
        return StoreUnavailable(f"{path} cannot be used as a database: {error}.")
    return error


def _open_prepared(path: Path) -> None:
    with closing(open_writer(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")  # a table that others point to can be rebuilt only so
        version = version_of(connection)
        if version > SCHEMA_VERSION:
            raise newer(str(path), version)
        if version == 0:
            create(connection, path)
        elif version < SCHEMA_VERSION:
            migrate(connection, version)
        connection.execute("PRAGMA table_list").fetchall()  # reads the schema: damage there is told now


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 in a new file."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def create(connection: sqlite3.Connection, path: Path) -> None:
    """All scripts in order, in a new file. Without Alembic: it takes longer to import than this takes."""
    (changes,) = connection.execute("PRAGMA schema_version").fetchone()
    if changes:
        raise SchemaMismatch(
            f"{path} is a database of something else: it has tables, but no version of ours."
        )
    _execute(connection, scripts("sqlite"))


def migrate(connection: sqlite3.Connection, version: int, folder: Path = FOLDER) -> None:
    """Run the revisions that are due, each in a transaction with its version number."""
    _execute(connection, due("sqlite", version, folder))


def _execute(connection: sqlite3.Connection, steps: Iterable[Script]) -> None:
    for script in steps:
        with _step(connection, script.version):
            for statement in statements(script.text):
                connection.execute(statement)


@contextmanager
def _step(connection: sqlite3.Connection, version: int) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        broken = connection.execute("PRAGMA foreign_key_check").fetchone()
        if broken is not None:
            raise SchemaMismatch(f"schema {version}: a row of {broken[0]} points to nothing in {broken[2]}.")
        connection.execute(f"PRAGMA user_version = {version}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _create_private(path: Path) -> None:
    """Readable by its owner only, from the first byte; SQLite gives its -wal and -shm the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
