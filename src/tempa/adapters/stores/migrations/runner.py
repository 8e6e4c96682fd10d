"""Runs revisions. Imports Alembic and SQLAlchemy: only to be imported when a migration is due.

The database's own version number (SQLite: `pragma user_version`) says where it stands, so there is
no `alembic_version` table beside it that could say otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from tempa.adapters.stores.migrations.scripts import FOLDER, scripts, statements

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from alembic.script import Script as Revision


def run_due(
    url: str,
    connect: Callable[[], Any],
    version: int,
    step: Callable[[int], AbstractContextManager[None]],
    folder: Path,
) -> None:
    """See `tempa.adapters.stores.migrations.run_due`."""
    engine = create_engine(url, creator=connect, poolclass=StaticPool)
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        for revision in due_revisions(version, folder):
            with step(int(revision.revision)):
                revision.module.upgrade()


def due_revisions(version: int, folder: Path = FOLDER) -> list[Revision]:
    """Oldest first. A revision's id is the version it leads to."""
    # The place of the revisions said outright: Alembic warns when it is left to guess.
    history = ScriptDirectory(str(folder), version_locations=[str(folder / "versions")])
    due = [revision for revision in history.walk_revisions() if int(revision.revision) > version]
    return sorted(due, key=lambda revision: int(revision.revision))


def run_script(operations: Any, version: int, folder: Path = FOLDER) -> None:
    """What a revision does: executes the script of its number for the database it is run on."""
    connection = operations.get_bind()
    dialect = connection.dialect.name
    text = next(script.text for script in scripts(dialect, folder) if script.version == version)
    for statement in statements(text) if dialect == "sqlite" else [text]:
        connection.exec_driver_sql(statement)
