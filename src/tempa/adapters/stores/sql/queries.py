"""Loads the named queries: each becomes a function of a connection and its parameters by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = Path(__file__).parent


def load_queries(driver: str | Callable[[], Any]) -> Any:
    """All named queries, for one of aiosql's drivers ("asyncpg") or an adapter of that kind.

    A name that occurs twice, an undeclared parameter or an unused one raises at once.
    """
    return aiosql.from_path(_FOLDER, driver)
