"""What revisions execute, as text. Imports Alembic and SQLAlchemy: only to be imported when one is due.

Alembic runs in its offline mode: it writes what it would execute, and the adapter executes that on its
own connection, in one transaction with the version's number. So no second driver is needed, and no
`alembic_version` table that could say something else than the database's own number.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tempa.adapters.stores.migrations.scripts import FOLDER, Script, scripts

if TYPE_CHECKING:
    from pathlib import Path

    from alembic.script import Script as Revision


def due(dialect: str, version: int, folder: Path) -> list[Script]:
    """See `tempa.adapters.stores.migrations.due`."""
    return [
        Script(int(revision.revision), _text(revision, dialect))
        for revision in due_revisions(version, folder)
    ]


def due_revisions(version: int, folder: Path = FOLDER) -> list[Revision]:
    """Oldest first. A revision's id is the version it leads to."""
    # The place of the revisions said outright: Alembic warns when it is left to guess.
    history = ScriptDirectory(str(folder), version_locations=[str(folder / "versions")])
    found = [revision for revision in history.walk_revisions() if int(revision.revision) > version]
    return sorted(found, key=lambda revision: int(revision.revision))


def run_script(operations: Any, version: int, folder: Path = FOLDER) -> None:
    """What a revision does: executes the script of its number for the database it is run on."""
    context = operations.get_context()
    text = next(script.text for script in scripts(context.dialect.name, folder) if script.version == version)
    context.impl.static_output(text)


def _text(revision: Revision, dialect: str) -> str:
    written = StringIO()
    options = {"as_sql": True, "output_buffer": written}
    with Operations.context(MigrationContext.configure(dialect_name=dialect, opts=options)):
        revision.module.upgrade()
    return written.getvalue()
