"""Accounts: what each may ask for, and what it has used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import account_from, account_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.core.accounts import Account

DAY_MS = 24 * 3600 * 1000


class AccountsPart(Access):
    """`AccountStore`."""

    async def account(self, account: str) -> Account | None:
        """One account."""
        return await self._read(_account, account)

    async def accounts(self) -> Sequence[tuple[Account, float]]:
        """All, in the order of their names, with the kernel seconds that each has used today (UTC)."""
        return await self._read(_accounts)

    async def set_account(self, account: str, changes: Mapping[str, Any]) -> Account:
        """Change some of an account's limits, by their names in `Account`; it need not be there yet."""
        return await self._write(_set, account, changes)

    async def compute_seconds_today(self, account: str) -> float:
        """Kernel seconds of the attempts that have ended since 00:00 UTC."""
        return await self._read(_compute, account)

    async def forget_days(self, limit: int) -> int:
        """Drop up to `limit` records of use from before yesterday; how many there were."""
        return await self._write(_forget, limit)


def _account(account: str) -> Flow[Account | None]:
    row = yield ASK.account(account=account)
    return None if row is None else account_from(row)


def _accounts() -> Flow[list[tuple[Account, float]]]:
    moment = yield MOMENT
    rows = yield ASK.accounts(day=moment.now // DAY_MS)
    return [(account_from(row), row["compute_ms"] / 1000) for row in rows]


def _set(account: str, changes: Mapping[str, Any]) -> Flow[Done[Account]]:
    moment = yield MOMENT
    yield ASK.ensure_account(account=account, now=moment.now)
    row = yield ASK.account_for_update(account=account)
    changed = replace(account_from(row), **changes)
    yield ASK.write_account(**account_row(changed))
    return Done(changed)


def _compute(account: str) -> Flow[float]:
    moment = yield MOMENT
    spent_ms = yield ASK.compute_of_day(account=account, day=moment.now // DAY_MS)
    return float(spent_ms) / 1000


def _forget(limit: int) -> Flow[Done[int]]:
    moment = yield MOMENT
    forgotten = yield ASK.forget_days(before=moment.now // DAY_MS - 1, limit=limit)
    return Done(forgotten)
