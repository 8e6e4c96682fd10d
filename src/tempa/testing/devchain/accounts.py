"""Accounts as `getAccountInfo` shows them."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from tempa.core.base58 import encode as base58
from tempa.testing.devchain import tokens
from tempa.testing.devchain.programs import TOKEN_2022
from tempa.testing.devchain.tokens import ui_amount

if TYPE_CHECKING:
    from collections.abc import Callable

    from solders.account import Account

    from tempa.testing.devchain.bank import Bank

_NATIVE_DECIMALS = 9


def account_json(bank: Bank, account: Account | None, encoding: str) -> dict[str, Any] | None:
    """None if nothing is there; what cannot be parsed comes as base64."""
    if account is None:
        return None
    return {
        "lamports": account.lamports,
        "owner": str(account.owner),
        "executable": account.executable,
        "rentEpoch": account.rent_epoch,
        "space": len(account.data),
        "data": _data(bank, account, encoding),
    }


def _data(bank: Bank, account: Account, encoding: str) -> Any:
    if encoding == "jsonParsed":
        found = _parsed(bank, account)
        if found is not None:
            program = "spl-token-2022" if account.owner == TOKEN_2022 else "spl-token"
            return {"program": program, "parsed": found, "space": len(account.data)}
    if encoding == "base58":
        return [base58(account.data), "base58"]
    return [base64.b64encode(account.data).decode(), "base64"]


def _parsed(bank: Bank, account: Account) -> dict[str, Any] | None:
    state = tokens.token_account(account)
    if state is not None:
        return {"type": "account", "info": _token_account(bank, state)}
    mint = tokens.mint(account)
    return None if mint is None else {"type": "mint", "info": _mint(mint)}


def _token_account(bank: Bank, state: tokens.TokenAccount) -> dict[str, Any]:
    mint = tokens.mint(bank.account(state.mint))
    decimals = _NATIVE_DECIMALS if mint is None else mint.decimals
    info: dict[str, Any] = {
        "mint": str(state.mint),
        "owner": str(state.owner),
        "tokenAmount": ui_amount(state.amount, decimals),
        "state": state.state,
        "isNative": state.native is not None,
    }
    if state.delegate is not None:
        info["delegate"] = str(state.delegate)
        info["delegatedAmount"] = ui_amount(state.delegated, decimals)
    if state.native is not None:
        info["rentExemptReserve"] = ui_amount(state.native, decimals)
    if state.closer is not None:
        info["closeAuthority"] = str(state.closer)
    if state.extensions:
        info["extensions"] = [{"extension": name} for name in state.extensions]
    return info


def _mint(mint: tokens.Mint) -> dict[str, Any]:
    info: dict[str, Any] = {
        "decimals": mint.decimals,
        "supply": str(mint.supply),
        "isInitialized": True,
        "mintAuthority": _text(mint.authority),
        "freezeAuthority": _text(mint.freezer),
    }
    if mint.extensions:
        info["extensions"] = [{"extension": name, **_state(name, value)} for name, value in mint.extensions]
    return info


def _state(name: str, value: bytes) -> dict[str, Any]:
    read = _STATES.get(name)
    return {} if read is None else {"state": read(value)}


def _fee(value: bytes) -> dict[str, Any]:
    def terms(at: int) -> dict[str, int]:
        epoch, fee_max, points = struct.unpack_from("<QQH", value, at)
        return {"epoch": epoch, "maximumFee": fee_max, "transferFeeBasisPoints": points}

    return {
        "transferFeeConfigAuthority": _key(value, 0),
        "withdrawWithheldAuthority": _key(value, 32),
        "withheldAmount": struct.unpack_from("<Q", value, 64)[0],
        "olderTransferFee": terms(72),
        "newerTransferFee": terms(90),
    }


def _scaled(value: bytes) -> dict[str, Any]:
    now, since, later = struct.unpack_from("<dqd", value, 32)
    return {
        "authority": _key(value, 0),
        "multiplier": repr(now),
        "newMultiplierEffectiveTimestamp": since,
        "newMultiplier": repr(later),
    }


def _key(value: bytes, at: int) -> str | None:
    found = value[at : at + 32]
    return None if found == bytes(32) else str(Pubkey.from_bytes(found))


def _text(key: Pubkey | None) -> str | None:
    return None if key is None else str(key)


_STATES: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "transferFeeConfig": _fee,
    "scaledUiAmountConfig": _scaled,
    "transferHook": lambda value: {"authority": _key(value, 0), "programId": _key(value, 32)},
    "permanentDelegate": lambda value: {"delegate": _key(value, 0)},
    "defaultAccountState": lambda value: {
        "accountState": ("uninitialized", "initialized", "frozen")[value[0]]
    },
    "pausableConfig": lambda value: {"authority": _key(value, 0), "paused": bool(value[32])},
    "mintCloseAuthority": lambda value: {"closeAuthority": _key(value, 0)},
}
