"""What the data of token accounts and mints say."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from tempa.testing.devchain.extensions import MINT_BYTES, NAMES
from tempa.testing.devchain.programs import TOKEN_PROGRAMS

if TYPE_CHECKING:
    from solders.account import Account

_ACCOUNT_BYTES = 165
_KIND_MINT, _KIND_ACCOUNT = 1, 2  # the byte behind the padding, when there are extensions
_STATES = ("uninitialized", "initialized", "frozen")
_EXACT = Context(prec=60)  # u64 with 255 decimals is shown in full by nobody, with 19 by all


@dataclass(frozen=True, slots=True)
class TokenAccount:
    """An account of either token program. Amounts in base units; `native`: its rent reserve, if of wSOL."""

    mint: Pubkey
    owner: Pubkey
    amount: int
    state: str
    delegate: Pubkey | None
    delegated: int
    native: int | None
    closer: Pubkey | None
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mint:
    """A mint of either token program."""

    decimals: int
    supply: int
    authority: Pubkey | None
    freezer: Pubkey | None
    extensions: tuple[tuple[str, bytes], ...]


def token_account(account: Account | None) -> TokenAccount | None:
    """None if it is no token account."""
    if account is None or account.owner not in TOKEN_PROGRAMS or not _is_account(account.data):
        return None
    data = account.data
    return TokenAccount(
        mint=Pubkey.from_bytes(data[:32]),
        owner=Pubkey.from_bytes(data[32:64]),
        amount=_u64(data, 64),
        delegate=_option(data, 72),
        state=_STATES[data[108]],
        native=_u64(data, 113) if data[109] else None,
        delegated=_u64(data, 121),
        closer=_option(data, 129),
        extensions=tuple(name for name, _ in _extensions(data)),
    )


def mint(account: Account | None) -> Mint | None:
    """None if it is no mint."""
    if account is None or account.owner not in TOKEN_PROGRAMS or not _is_mint(account.data):
        return None
    data = account.data
    return Mint(
        authority=_option(data, 0),
        supply=_u64(data, 36),
        decimals=data[44],
        freezer=_option(data, 46),
        extensions=tuple(_extensions(data)),
    )


def ui_amount(amount: int, decimals: int) -> dict[str, Any]:
    """An amount as the RPC shows it: `amount` is the truth, `uiAmount` a float."""
    exact = _EXACT.scaleb(Decimal(amount), -decimals)
    text = f"{exact:f}"
    shown = text.rstrip("0").rstrip(".") if "." in text else text
    return {
        "amount": str(amount),
        "decimals": decimals,
        "uiAmount": float(exact),
        "uiAmountString": shown,
    }


def _is_account(data: bytes) -> bool:
    if len(data) <= _ACCOUNT_BYTES:
        return len(data) == _ACCOUNT_BYTES and data[108] != 0
    return data[_ACCOUNT_BYTES] == _KIND_ACCOUNT


def _is_mint(data: bytes) -> bool:
    if len(data) <= _ACCOUNT_BYTES:
        return len(data) == MINT_BYTES and data[45] != 0
    return data[_ACCOUNT_BYTES] == _KIND_MINT


def _extensions(data: bytes) -> list[tuple[str, bytes]]:
    found, at = [], _ACCOUNT_BYTES + 1
    while at + 4 <= len(data):
        number, size = struct.unpack_from("<HH", data, at)
        if number == 0:  # what follows is room for more
            break
        found.append((NAMES.get(number, "unparseableExtension"), data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def _option(data: bytes, at: int) -> Pubkey | None:
    return Pubkey.from_bytes(data[at + 4 : at + 36]) if data[at] else None


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
