"""Makes a database ready: new, migrated, or refused."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import asyncpg

from tempa.adapters.stores.migrations import FOLDER, SCHEMA_VERSION, SchemaMismatch, due, newer, scripts
from tempa.adapters.stores.postgres.access import SQL
from tempa.adapters.stores.postgres.connections import is_fault
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.adapters.stores.migrations import Script

_logger = logging.getLogger(__name__)

POSTGRES_MIN = 140_000  # "begin atomic" functions


async def prepare(url: str, folder: Path = FOLDER) -> None:
    """Create the tables, or bring them up to `SCHEMA_VERSION`, in one transaction.

    Several processes may start at once: they pass one at a time. Raises SchemaMismatch, and
    StoreUnavailable when the server cannot be reached.
    """
    try:
        connection = await asyncpg.connect(url, statement_cache_size=0, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise StoreUnavailable(f"The database cannot be reached: {error}") from error
    try:
        async with connection.transaction():
            await _prepare(connection, folder)
    except asyncpg.PostgresError as error:
        if is_fault(error):
            raise StoreUnavailable(f"The database cannot be used: {error}") from error
        raise
    finally:
        await connection.close()


async def _prepare(connection: Any, folder: Path) -> None:
    if connection.get_server_version().major * 10_000 < POSTGRES_MIN:
        raise SchemaMismatch("Tempa needs PostgreSQL 14 or newer.")
    if await SQL.synchronous_commit(connection) == "off":
        _logger.warning("synchronous_commit is off: a crash of the database loses tickets that were given")
    await SQL.lock_schema(connection)
    version = await version_of(connection)
    if version > SCHEMA_VERSION:
        raise newer("The database", version)
    for script in _steps(version, folder):
        await _execute(connection, script.text)
        await SQL.set_schema_version(connection, version=script.version)


def _steps(version: int, folder: Path) -> list[Script]:
    """In a new database all scripts; without Alembic, which takes longer to import than they take."""
    if version == 0:
        return scripts("postgresql", folder)
    return due("postgresql", version, folder) if version < SCHEMA_VERSION else []


async def version_of(connection: Any) -> int:
    """The schema's version; 0 in a new database."""
    if await SQL.is_new(connection):
        return 0
    return int(await SQL.schema_version(connection))


async def _execute(connection: Any, script: str) -> None:
    try:
        await connection.execute(script)
    except (asyncpg.DuplicateTableError, asyncpg.DuplicateFunctionError) as error:
        raise SchemaMismatch(
            f"The database holds something else: {error}. Give Tempa a database or a schema of its own."
        ) from error
