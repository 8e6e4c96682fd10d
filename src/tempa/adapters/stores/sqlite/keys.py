"""API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.sql import key_from, key_row
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.core.accounts import ApiKey


class KeysPart(Access):
    """`KeyStore`."""

    async def add_key(self, key: ApiKey) -> None:
        """Keep a key. Its account comes into being with its first one."""
        row = key_row(key)

        def transaction(connection: sqlite3.Connection) -> Done[None]:
            SQL.ensure_account(connection, account=key.account, now=self._now())
            SQL.insert_key(connection, **row)
            return Done(None)

        await self._write(transaction)

    async def key_by_digest(self, digest: str) -> ApiKey | None:
        """The key with this SHA-256, revoked or not."""

        def query(connection: sqlite3.Connection) -> ApiKey | None:
            row = SQL.key_by_digest(connection, digest=digest)
            return None if row is None else key_from(row)

        return await self._read(query)

    async def keys(self, account: str) -> Sequence[ApiKey]:
        """All keys of an account, oldest first."""
        return await self._read(
            lambda connection: [key_from(row) for row in SQL.keys_of_account(connection, account=account)]
        )

    async def revoke_key(self, account: str, key_id: str) -> bool:
        """Revoke, for good. False: no such key."""
        return await self._write(
            lambda connection: Done(
                SQL.revoke_key(connection, account=account, key_id=key_id, now=self._now()) > 0
            )
        )

    async def touch_keys(self, last_used: dict[str, datetime]) -> None:
        """Record when keys were last used, many in one write."""
        rows = [{"key_id": key_id, "used_at": to_ms(at)} for key_id, at in last_used.items()]

        def transaction(connection: sqlite3.Connection) -> Done[None]:
            SQL.touch_key(connection, rows)
            return Done(None)

        await self._write(transaction)
