"""Loads the named queries: each becomes a function of a connection and its parameters by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiosql

_FOLDER = Path(__file__).parent


def load_queries(driver: str) -> Any:
    """All named queries, for one of aiosql's drivers ("sqlite3", "asyncpg").

    A name that occurs twice, an undeclared parameter or an unused one raises at once.
    """
    return aiosql.from_path(_FOLDER, driver)
