"""How connections are opened, and which of SQLite's errors mean that the store is not available."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BUSY_MS = 5000  # a backup or a curious sqlite3 shell may hold the file for a moment
_CHECKPOINT_PAGES = 1000  # 4 MB: larger only makes the commit that pays for it slower
_WAL_BYTES_MAX = 64 * 1024 * 1024  # what a long reader made of the WAL is given back afterwards
_CACHE_KIB = 16 * 1024
_STATEMENTS = 256  # more than there are named queries: each is compiled once a connection

# The machine's doing, not the statement's. All else is a fault in our code or a broken constraint.
_FAULTS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


def open_writer(path: Path) -> sqlite3.Connection:
    """The one connection that may write. For use in the thread that opens it."""
    with _opening(path) as connection:
        # WAL: readers never wait for the writer nor it for them. FULL: a commit returns when it is on disk.
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise sqlite3.OperationalError(f"{path}: this file system cannot hold a write-ahead log")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_MAX}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, whatever it is told."""
    with _opening(path) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def is_fault(error: BaseException) -> bool:
    """Whether the disk, the memory or a lock failed, and not what was asked."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _FAULTS  # the low byte is the class of an extended code


@contextmanager
def _opening(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is set up in the block, and closed again if that fails."""
    connection = sqlite3.connect(
        path,
        isolation_level=None,  # transactions are ours: the module's own would begin them too late
        check_same_thread=False,  # closed by whoever closes the store; used by its own thread only
        cached_statements=_STATEMENTS,
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        yield connection
    except BaseException:
        connection.close()
        raise
