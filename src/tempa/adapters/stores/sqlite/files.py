"""Uploaded inputs, and whose bytes are nobody's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tempa.adapters.stores.sql import file_from
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from tempa.jobs.model import StoredFile


class FilesPart(Access):
    """`JobStore`: files."""

    async def add_file(self, stored: StoredFile) -> None:
        """Record an upload whose bytes are durable."""

        def transaction(connection: sqlite3.Connection) -> Done[None]:
            SQL.insert_file(
                connection,
                id=stored.id,
                account=stored.account,
                key=stored.key,
                sha256=stored.sha256,
                size_bytes=stored.size_bytes,
                created_at=to_ms(stored.created_at),
                expires_at=to_ms(stored.expires_at),
            )
            return Done(None)

        await self._write(transaction)

    async def file(self, account: str, file_id: str) -> StoredFile | None:
        """One file."""

        def query(connection: sqlite3.Connection) -> StoredFile | None:
            row = SQL.file_of_account(connection, account=account, file_id=file_id)
            return None if row is None else file_from(row)

        return await self._read(query)

    async def lapsed_files(self, limit: int) -> list[StoredFile]:
        """Files that have expired, the earliest first."""
        return await self._read(
            lambda connection: [
                file_from(row) for row in SQL.lapsed_files(connection, now=self._now(), limit=limit)
            ]
        )

    async def forget_file(self, file_id: str) -> None:
        """Drop the record. What is gone is fine."""

        def transaction(connection: sqlite3.Connection) -> Done[None]:
            SQL.forget_file(connection, file_id=file_id)
            return Done(None)

        await self._write(transaction)

    async def orphans(self, owners: Sequence[str]) -> list[str]:
        """Those of `owners` whose bytes nobody can reach: removed jobs, uploads without a record."""
        wanted = json.dumps([*owners])
        return await self._read(
            lambda connection: [row["owner"] for row in SQL.orphans(connection, owners=wanted)]
        )
