"""The schema's history: numbered .sql scripts, and the Alembic revisions that execute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.migrations.scripts import FOLDER, Script, scripts, statements

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FOLDER", "SCHEMA_VERSION", "SchemaMismatch", "Script", "due", "scripts", "statements"]

SCHEMA_VERSION = 5
"""What this code reads and writes: the number of the last script, of either database."""


class SchemaMismatch(Exception):  # noqa: N818 - it says what is the case
    """This is not a database this code can work with. Nothing in it was changed."""


def due(dialect: str, version: int, folder: Path = FOLDER) -> list[Script]:
    """What the revisions that a database of `version` lacks would execute, oldest first."""
    from tempa.adapters.stores.migrations import runner  # 0.8 s of CPU, spent only when one is due

    return runner.due(dialect, version, folder)


def newer(what: str, version: int) -> SchemaMismatch:
    """The refusal of a database that a later release has migrated."""
    return SchemaMismatch(
        f"{what} was written by a newer Tempa (schema {version}; this one knows {SCHEMA_VERSION}). "
        "Upgrade Tempa, or restore a backup made before the upgrade."
    )
