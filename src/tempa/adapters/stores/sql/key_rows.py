"""Rows of `api_key` as the words of `core.accounts`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.accounts import ApiKey
from tempa.core.clock import from_ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping


def key_row(key: ApiKey) -> dict[str, Any]:
    """The columns of a key."""
    return {
        "id": key.id,
        "account": key.account,
        "name": key.name,
        "hint": key.hint,
        "digest": key.digest,
        "scopes": encode(key.scopes),
        "created_at": to_ms(key.created_at),
        "revoked_at": None if key.revoked_at is None else to_ms(key.revoked_at),
        "last_used_at": None if key.last_used_at is None else to_ms(key.last_used_at),
    }


def key_from(row: Mapping[str, Any]) -> ApiKey:
    """A row of `api_key`."""
    return ApiKey(
        id=row["id"],
        account=row["account"],
        name=row["name"],
        hint=row["hint"],
        digest=row["digest"],
        scopes=tuple(decode(row["scopes"])),
        created_at=from_ms(row["created_at"]),
        revoked_at=None if row["revoked_at"] is None else from_ms(row["revoked_at"]),
        last_used_at=None if row["last_used_at"] is None else from_ms(row["last_used_at"]),
    )
