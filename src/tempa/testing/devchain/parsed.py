"""Instructions as `jsonParsed` shows them; what is not known stays as accounts and data."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from tempa.core.base58 import encode as base58
from tempa.testing.devchain.programs import ASSOCIATED_TOKEN, MEMO_PROGRAMS, SYSTEM, TOKEN_PROGRAMS
from tempa.testing.devchain.tokens import ui_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    _Reader = Callable[[bytes, Sequence[str]], dict[str, Any]]


def parsed(program: Pubkey, data: bytes, accounts: Sequence[str], stack_height: int) -> dict[str, Any]:
    """One instruction. p-token's batch is among what stays unparsed."""
    names = {"programId": str(program), "stackHeight": stack_height}
    try:
        found = _read(program, data, accounts)
    except (struct.error, IndexError, ValueError):  # cut short, or accounts are missing
        found = None
    if found is None:
        return {**names, "accounts": list(accounts), "data": base58(data)}
    return {**names, "program": found[0], "parsed": found[1]}


def _read(program: Pubkey, data: bytes, accounts: Sequence[str]) -> tuple[str, Any] | None:
    if program in MEMO_PROGRAMS:
        return "spl-memo", data.decode()
    if program == SYSTEM:
        return _typed("system", _SYSTEM.get(_u32(data, 0)), data, accounts)
    if program in TOKEN_PROGRAMS:
        number = (data[0], data[1]) if data[0] == _TRANSFER_FEE else data[0]
        return _typed("spl-token", _TOKEN.get(number), data, accounts)
    if program == ASSOCIATED_TOKEN:
        return _typed("spl-associated-token-account", _ASSOCIATED.get(data[0] if data else 0), data, accounts)
    return None


def _typed(
    program: str, reader: tuple[str, _Reader] | None, data: bytes, accounts: Sequence[str]
) -> tuple[str, Any] | None:
    if reader is None:
        return None
    name, read = reader
    return program, {"type": name, "info": read(data, accounts)}


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _u64(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<Q", data, at)[0])


def _key(data: bytes, at: int) -> str:
    return str(Pubkey.from_bytes(data[at : at + 32]))


def _named(*names: str) -> _Reader:
    """Accounts under their names, and no more."""
    return lambda _data, accounts: {name: accounts[at] for at, name in enumerate(names)}


def _system_transfer(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {"source": accounts[0], "destination": accounts[1], "lamports": _u64(data, 4)}


def _create_account(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "source": accounts[0],
        "newAccount": accounts[1],
        "lamports": _u64(data, 4),
        "space": _u64(data, 12),
        "owner": _key(data, 20),
    }


def _transfer(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "source": accounts[0],
        "destination": accounts[1],
        **_authority(accounts, 2),
        "amount": str(_u64(data, 1)),
    }


def _checked(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {**_moved(accounts), "tokenAmount": ui_amount(_u64(data, 1), data[9])}


def _checked_with_fee(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    amount, decimals, fee = struct.unpack_from("<QBQ", data, 2)
    amounts = {"tokenAmount": ui_amount(amount, decimals), "feeAmount": ui_amount(fee, decimals)}
    return {**_moved(accounts), **amounts}


def _moved(accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "source": accounts[0],
        "mint": accounts[1],
        "destination": accounts[2],
        **_authority(accounts, 3),
    }


def _authority(accounts: Sequence[str], at: int) -> dict[str, Any]:
    """More accounts at the end are the signers of a multisig, or labels: the RPC cannot tell either."""
    if len(accounts) > at + 1:
        return {"multisigAuthority": accounts[at], "signers": list(accounts[at + 1 :])}
    return {"authority": accounts[at]}


def _minted(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "mint": accounts[0],
        "account": accounts[1],
        "amount": str(_u64(data, 1)),
        "mintAuthority": accounts[2],
    }


def _minted_checked(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "mint": accounts[0],
        "account": accounts[1],
        "tokenAmount": ui_amount(_u64(data, 1), data[9]),
        "mintAuthority": accounts[2],
    }


def _opened(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {"account": accounts[0], "mint": accounts[1], "owner": _key(data, 1)}


def _mint_opened(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    may_freeze = {"freezeAuthority": _key(data, 35)} if data[34] else {}
    return {"mint": accounts[0], "decimals": data[1], "mintAuthority": _key(data, 2), **may_freeze}


def _approved(data: bytes, accounts: Sequence[str]) -> dict[str, Any]:
    return {
        "source": accounts[0],
        "delegate": accounts[1],
        "amount": str(_u64(data, 1)),
        "owner": accounts[2],
    }


_TRANSFER_FEE = 26
_CREATED = _named("source", "account", "wallet", "mint", "systemProgram", "tokenProgram")
_NESTED = ("nestedSource", "nestedMint", "destination", "nestedOwner", "ownerMint", "wallet", "tokenProgram")

_SYSTEM: dict[int, tuple[str, _Reader]] = {
    0: ("createAccount", _create_account),
    2: ("transfer", _system_transfer),
    4: ("advanceNonce", _named("nonceAccount", "recentBlockhashesSysvar", "nonceAuthority")),
}
_TOKEN: dict[int | tuple[int, int], tuple[str, _Reader]] = {
    3: ("transfer", _transfer),
    4: ("approve", _approved),
    7: ("mintTo", _minted),
    9: ("closeAccount", _named("account", "destination", "owner")),
    10: ("freezeAccount", _named("account", "mint", "freezeAuthority")),
    12: ("transferChecked", _checked),
    14: ("mintToChecked", _minted_checked),
    17: ("syncNative", _named("account")),
    18: ("initializeAccount3", _opened),
    20: ("initializeMint2", _mint_opened),
    22: ("initializeImmutableOwner", _named("account")),
    (_TRANSFER_FEE, 1): ("transferCheckedWithFee", _checked_with_fee),
}
_ASSOCIATED: dict[int, tuple[str, _Reader]] = {
    0: ("create", _CREATED),
    1: ("createIdempotent", _CREATED),
    2: ("recoverNested", _named(*_NESTED)),
}
