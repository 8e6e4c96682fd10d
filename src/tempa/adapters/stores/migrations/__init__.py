"""The schema's history: numbered .sql scripts, and the Alembic revisions that execute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.migrations.scripts import FOLDER, Script, scripts, statements

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["FOLDER", "Script", "run_due", "scripts", "statements"]


def run_due(
    url: str,
    connect: Callable[[], Any],
    version: int,
    step: Callable[[int], AbstractContextManager[None]],
    folder: Path = FOLDER,
) -> None:
    """Run the revisions that a database of `version` lacks, each inside `step(its number)`.

    `step` begins, sets the new version and commits. `url` names SQLAlchemy's dialect, `connect`
    gives the driver's connection.
    """
    from tempa.adapters.stores.migrations import runner  # 0.8 s of CPU, spent only when one is due

    runner.run_due(url, connect, version, step, folder)
