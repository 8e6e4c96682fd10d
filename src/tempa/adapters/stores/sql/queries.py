"""Loads the named queries: each becomes a function of a connection and its parameters by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import aiosql

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent

Dialect = Literal["sqlite", "postgres"]


def query_files(dialect: Dialect) -> list[Path]:
    """What both databases read, and what `dialect` reads in its own way."""
    return [*sorted(FOLDER.glob("*.sql")), *sorted((FOLDER / dialect).glob("*.sql"))]


def load_queries(dialect: Dialect, driver: str | Callable[[], Any]) -> Any:
    """All named queries, for one of aiosql's drivers ("asyncpg") or an adapter of that kind.

    A name that occurs twice, an undeclared parameter or an unused one raises at once.
    """
    text = "\n".join(path.read_text("utf-8") for path in query_files(dialect))
    return aiosql.from_str(text, driver)
