"""Rows of `account` as the words of `core.accounts`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.accounts import Account
from tempa.core.clock import from_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMITS = ("weight", "running_max", "queued_max", "requests_per_second", "compute_seconds_per_day")


def account_row(account: Account) -> dict[str, Any]:
    """The columns that change."""
    return {"account": account.id, **{name: getattr(account, name) for name in _LIMITS}}


def account_from(row: Mapping[str, Any]) -> Account:
    """A row of `account`."""
    return Account(
        id=row["id"], created_at=from_ms(row["created_at"]), **{name: row[name] for name in _LIMITS}
    )
