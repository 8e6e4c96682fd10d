"""Whether the treasury's accounts and mints are what they were when they were listed (rules V8 and V9).

Pure: from the chain's own view of an account. To be looked at before the first credit, and daily: an issuer
may give a Token-2022 mint new settings, freeze an account, or be given a delegate over it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.core.canonical import fingerprint
from tempa.settlement.answer import UnreadableError, digits
from tempa.settlement.derive import associated_account
from tempa.settlement.model import SOL
from tempa.settlement.transfers import TOKEN, TOKEN_2022

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.settlement.model import Treasury, TreasuryAccount

# By name, why an extension is refused unless the row names it. Any other that it does not name is
# `extension_not_allowed`; those of HARMLESS move no money.
_REFUSALS: Mapping[str, str] = {
    "transferFeeConfig": "transfer_fee",
    "transferHook": "transfer_hook",
    "nonTransferable": "non_transferable",
    "defaultAccountState": "default_frozen",
    "confidentialTransferMint": "confidential_transfer",
    "confidentialTransferFeeConfig": "confidential_transfer",
    "confidentialMintBurn": "confidential_transfer",
    "pausableConfig": "pausable",
    "permanentDelegate": "permanent_delegate",
}
HARMLESS = frozenset(
    {
        "metadataPointer",
        "tokenMetadata",
        "groupPointer",
        "tokenGroup",
        "groupMemberPointer",
        "tokenGroupMember",
    }
)


def admitted(treasury: Treasury, states: Mapping[str, Mapping[str, Any] | None]) -> Treasury:
    """The treasury with each row's `refusal` as the chain shows it.

    `states`: by address, of every row's account and mint, the `jsonParsed` value; None if there is none.
    """
    rows = (replace(row, refusal=refusal(row, states)) for row in treasury.accounts)
    return replace(treasury, accounts=tuple(rows))


def refusal(row: TreasuryAccount, states: Mapping[str, Mapping[str, Any] | None]) -> str | None:
    """Why nothing that comes to this row may be credited (a code of `reasons`); None if nothing is wrong.

    A wallet for SOL need not exist before its first payment.
    """
    if row.asset == SOL:
        return None
    return mint_fault(row, states.get(row.asset)) or account_fault(row, states.get(row.address))


def mint_fault(row: TreasuryAccount, value: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the mint of a row."""
    info = _info(value, "mint")
    if value is None or info is None:
        return "mint_unreadable"
    if value.get("owner") != row.program:
        return "wrong_program"
    if info.get("decimals") != row.decimals or isinstance(info.get("decimals"), bool):
        return "wrong_decimals"
    names = _extensions(info)
    if names is None or (row.program == TOKEN and names):
        return "mint_unreadable"
    strange = sorted(names - row.extensions - HARMLESS)
    known = [_REFUSALS[name] for name in strange if name in _REFUSALS]
    return (known or ["extension_not_allowed"])[0] if strange else None


def mint_terms(value: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """The token program and the decimals of a mint; None if this is none."""
    info = _info(value, "mint")
    program, decimals = (value or {}).get("owner"), (info or {}).get("decimals")
    if program not in {TOKEN, TOKEN_2022} or not isinstance(decimals, int) or not 0 <= decimals <= 255:
        return None
    return str(program), int(decimals)


def account_fault(row: TreasuryAccount, value: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the token account of a row."""
    if value is None:  # at the derived address the first payment opens it, for this owner and no other
        derived = associated_account(row.owner, row.asset, row.program or "")
        return None if row.address == derived else "account_missing"
    info = _info(value, "account")
    pinned = (row.program, row.owner, row.asset)
    if info is None or (value.get("owner"), info.get("owner"), info.get("mint")) != pinned:
        return "account_changed"
    if info.get("state") != "initialized":
        return "account_frozen"
    if info.get("delegate") is not None:
        return "account_delegated"
    if info.get("closeAuthority") not in {None, row.owner}:
        return "close_authority"
    return None


def balance(row: TreasuryAccount, value: Mapping[str, Any] | None) -> int:
    """What the account holds, in base units; 0 if there is none. Raises `UnreadableError`."""
    if value is None:
        return 0
    if row.asset == SOL:
        return digits(str(value.get("lamports")))
    info = _info(value, "account")
    amount = info.get("tokenAmount") if info is not None else None
    if not isinstance(amount, dict) or info is None or info.get("mint") != row.asset:
        raise UnreadableError
    return digits(amount.get("amount"))


def mint_hash(value: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of what an issuer may change of a mint: a change wants a look. Raises `UnreadableError`.

    The supply is left out: it moves all the time. Numbers as text, as some exceed what JSON's readers share.
    """
    info = _info(value, "mint")
    if info is None:
        raise UnreadableError
    settings = {name: told for name, told in info.items() if name != "supply"}
    try:
        return fingerprint(_as_text({"program": value.get("owner"), "mint": settings}))
    except (RecursionError, UnicodeError, ValueError):
        raise UnreadableError from None


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _as_text(told) for name, told in value.items()}
    if isinstance(value, list):
        return [_as_text(told) for told in value]
    return value if value is None or isinstance(value, bool) else str(value)


def _info(value: Mapping[str, Any] | None, kind: str) -> Mapping[str, Any] | None:
    """What the node parsed of an account of this kind."""
    data = value.get("data") if value is not None else None
    parsed = data.get("parsed") if isinstance(data, dict) else None
    if not isinstance(parsed, dict) or parsed.get("type") != kind:
        return None
    info = parsed.get("info")
    return info if isinstance(info, dict) else None


def _extensions(info: Mapping[str, Any]) -> frozenset[str] | None:
    """Names, as the node gives them (one that it cannot parse has a name too); None if unreadable."""
    listed = info.get("extensions", [])
    if not isinstance(listed, list):
        return None
    names = [entry.get("extension") if isinstance(entry, dict) else None for entry in listed]
    if not all(isinstance(name, str) for name in names):
        return None
    return frozenset(str(name) for name in names)
