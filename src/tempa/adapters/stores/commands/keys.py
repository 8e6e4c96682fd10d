"""API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import key_from, key_row
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.core.accounts import ApiKey


class KeysPart(Access):
    """`KeyStore`."""

    async def add_key(self, key: ApiKey) -> None:
        """Keep a key. Its account comes into being with its first one."""
        await self._write(_add, key)

    async def key_by_digest(self, digest: str) -> ApiKey | None:
        """The key with this SHA-256, revoked or not."""
        return await self._read(_by_digest, digest)

    async def keys(self, account: str) -> Sequence[ApiKey]:
        """All keys of an account, oldest first."""
        return await self._read(_of_account, account)

    async def revoke_key(self, account: str, key_id: str) -> bool:
        """Revoke, for good. False: no such key."""
        return await self._write(_revoke, account, key_id)

    async def touch_keys(self, last_used: dict[str, datetime]) -> None:
        """Record when keys were last used, many in one write."""
        rows = [{"key_id": key_id, "used_at": to_ms(at)} for key_id, at in last_used.items()]
        await self._write(_touch, rows)


def _add(key: ApiKey) -> Flow[Done[None]]:
    moment = yield MOMENT
    yield ASK.ensure_account(account=key.account, now=moment.now)
    yield ASK.insert_key(**key_row(key))
    return Done(None)


def _by_digest(digest: str) -> Flow[ApiKey | None]:
    row = yield ASK.key_by_digest(digest=digest)
    return None if row is None else key_from(row)


def _of_account(account: str) -> Flow[list[ApiKey]]:
    rows = yield ASK.keys_of_account(account=account)
    return [key_from(row) for row in rows]


def _revoke(account: str, key_id: str) -> Flow[Done[bool]]:
    moment = yield MOMENT
    revoked = yield ASK.revoke_key(account=account, key_id=key_id, now=moment.now)
    return Done(revoked > 0)


def _touch(rows: list[dict[str, Any]]) -> Flow[Done[None]]:
    yield ASK.touch_key(rows)
    return Done(None)
