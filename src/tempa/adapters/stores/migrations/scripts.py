"""The .sql files of each database, in order: the one description of its tables."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """One step of the schema: applying it makes a database of version `version - 1` one of `version`."""

    version: int
    text: str


def scripts(dialect: str, folder: Path = FOLDER) -> list[Script]:
    """All scripts of `dialect` ("sqlite", "postgresql"), oldest first: `sql/<dialect>/NNNN_what.sql`."""
    paths = sorted((folder / "sql" / dialect).glob("*.sql"))
    found = [Script(int(path.name.partition("_")[0]), path.read_text("utf-8")) for path in paths]
    assert [script.version for script in found] == list(range(1, len(found) + 1)), "a gap in the scripts"
    return found


def statements(text: str) -> Iterator[str]:
    """The single statements of an SQLite script, triggers in one piece.

    sqlite3's own executescript() commits what is open before it starts, so that a script that
    fails half-way would leave half a schema.
    """
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "the script's last statement has no end"
