"""Uploaded inputs, and whose bytes are nobody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import encode, file_from
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.jobs.model import StoredFile


class FilesPart(Access):
    """`JobStore`: files."""

    async def add_file(self, stored: StoredFile) -> None:
        """Record an upload whose bytes are durable."""
        await self._write(_add, stored)

    async def file(self, account: str, file_id: str) -> StoredFile | None:
        """One file."""
        return await self._read(_file, account, file_id)

    async def lapsed_files(self, limit: int) -> list[StoredFile]:
        """Files past their expiry, the earliest first."""
        return await self._read(_lapsed, limit)

    async def forget_file(self, file_id: str) -> None:
        """Drop the record of a file whose bytes are gone."""
        await self._write(_forget, file_id)

    async def orphans(self, owners: Sequence[str]) -> list[str]:
        """Those of `owners` whose bytes nobody can reach: removed jobs, uploads without a record."""
        return await self._read(_orphans, owners)

    async def unknown_jobs(self, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that no job has."""
        return await self._read(_unknown_jobs, ids)


def _add(stored: StoredFile) -> Flow[Done[None]]:
    yield ASK.insert_file(
        id=stored.id,
        account=stored.account,
        key=stored.key,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        created_at=to_ms(stored.created_at),
        expires_at=to_ms(stored.expires_at),
    )
    return Done(None)


def _file(account: str, file_id: str) -> Flow[StoredFile | None]:
    row = yield ASK.file_of_account(account=account, file_id=file_id)
    return None if row is None else file_from(row)


def _lapsed(limit: int) -> Flow[list[StoredFile]]:
    moment = yield MOMENT
    rows = yield ASK.lapsed_files(now=moment.now, limit=limit)
    return [file_from(row) for row in rows]


def _forget(file_id: str) -> Flow[Done[None]]:
    yield ASK.forget_file(file_id=file_id)
    return Done(None)


def _orphans(owners: Sequence[str]) -> Flow[list[str]]:
    rows = yield ASK.orphans(owners=encode(owners))
    return [row["owner"] for row in rows]


def _unknown_jobs(ids: Sequence[str]) -> Flow[list[str]]:
    rows = yield ASK.unknown_jobs(ids=encode(ids))
    return [row["id"] for row in rows]
