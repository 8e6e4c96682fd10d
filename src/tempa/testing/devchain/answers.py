"""Transactions as `getTransaction` and `getBlock` give them, in each encoding."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from solders.message import Message, MessageV0

from tempa.core.base58 import encode as base58
from tempa.testing.devchain.parsed import parsed
from tempa.testing.devchain.programs import MEMO_PROGRAMS
from tempa.testing.devchain.tokens import ui_amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from solders.account import Account
    from solders.message import VersionedMessage
    from solders.pubkey import Pubkey
    from solders.transaction import VersionedTransaction

    from tempa.testing.devchain.bank import Execution, Keys, TokenBalance

ENCODINGS = ("json", "jsonParsed", "base58", "base64")
_TINY = 2.220446049250313e-16  # what is stored as a float no larger than this comes back as null


def version_of(transaction: VersionedTransaction) -> int | str:
    """`legacy`, 0 or 1."""
    message = transaction.message
    if isinstance(message, Message):
        return "legacy"
    return 0 if isinstance(message, MessageV0) else 1


def transaction_json(execution: Execution, encoding: str) -> Any:
    """The member `transaction` of an answer."""
    raw = bytes(execution.transaction)
    if encoding == "base64":
        return [base64.b64encode(raw).decode(), "base64"]
    if encoding == "base58":
        return [base58(raw), "base58"]
    signatures = [str(signature) for signature in execution.transaction.signatures]
    message = _parsed_message if encoding == "jsonParsed" else _raw_message
    return {"signatures": signatures, "message": message(execution)}


def meta_json(execution: Execution, encoding: str) -> dict[str, Any]:
    """The member `meta`. `loadedAddresses` is not there in `jsonParsed`, whose keys tell their source."""
    meta, err = execution.meta, execution.err
    parse = encoding == "jsonParsed"
    keys = execution.keys
    answer = {
        "err": err,
        "status": {"Ok": None} if err is None else {"Err": err},
        "fee": meta.fee(),
        "preBalances": _lamports(execution.before),
        "postBalances": _lamports(execution.after),
        "preTokenBalances": _token_balances(execution.tokens_before),
        "postTokenBalances": _token_balances(execution.tokens_after),
        "innerInstructions": list(_inner(execution, parse=parse)),
        "logMessages": meta.logs(),
        "computeUnitsConsumed": meta.compute_units_consumed(),
        "rewards": [],
    }
    if not parse:
        answer["loadedAddresses"] = {
            "writable": [str(key) for key in keys.writable],
            "readonly": [str(key) for key in keys.readonly],
        }
    return answer


def memo_of(execution: Execution) -> str | None:
    """All memos as address histories have them: `[5] first; [6] second`."""
    message = execution.transaction.message
    memos = [
        bytes(instruction.data)
        for instruction in message.instructions
        if execution.keys.all[instruction.program_id_index] in MEMO_PROGRAMS
    ]
    told = [f"[{len(data)}] {data.decode(errors='replace')}" for data in memos]
    return "; ".join(told) or None


def account_keys(execution: Execution) -> list[dict[str, Any]]:
    """Every key with its rights and where it comes from."""
    message, keys = execution.transaction.message, execution.keys
    rights = list(_rights(message, keys))
    return [
        {
            "pubkey": str(key),
            "signer": signs,
            "writable": may_write,
            "source": "transaction" if index < len(keys.static) else "lookupTable",
        }
        for index, (key, (signs, may_write)) in enumerate(zip(keys.all, rights, strict=True))
    ]


def _rights(message: VersionedMessage, keys: Keys) -> Iterator[tuple[bool, bool]]:
    header, static = message.header, len(keys.static)
    signers = header.num_required_signatures
    for index in range(static):
        if index < signers:
            yield True, index < signers - header.num_readonly_signed_accounts
        else:
            yield False, index < static - header.num_readonly_unsigned_accounts
    for index in range(len(keys.writable) + len(keys.readonly)):
        yield False, index < len(keys.writable)


def _parsed_message(execution: Execution) -> dict[str, Any]:
    message, keys = execution.transaction.message, execution.keys
    return {
        "accountKeys": account_keys(execution),
        "recentBlockhash": str(message.recent_blockhash),
        "instructions": [
            parsed(
                keys.all[instruction.program_id_index],
                bytes(instruction.data),
                [str(keys.all[index]) for index in instruction.accounts],
                1,
            )
            for instruction in message.instructions
        ],
        **_lookups(message),
    }


def _raw_message(execution: Execution) -> dict[str, Any]:
    message = execution.transaction.message
    header = message.header
    return {
        "header": {
            "numRequiredSignatures": header.num_required_signatures,
            "numReadonlySignedAccounts": header.num_readonly_signed_accounts,
            "numReadonlyUnsignedAccounts": header.num_readonly_unsigned_accounts,
        },
        "accountKeys": [str(key) for key in message.account_keys],
        "recentBlockhash": str(message.recent_blockhash),
        "instructions": [_raw_instruction(instruction, 1) for instruction in message.instructions],
        **_lookups(message),
    }


def _raw_instruction(instruction: Any, stack_height: int) -> dict[str, Any]:
    return {
        "programIdIndex": instruction.program_id_index,
        "accounts": list(instruction.accounts),
        "data": base58(bytes(instruction.data)),
        "stackHeight": stack_height,
    }


def _lookups(message: VersionedMessage) -> dict[str, Any]:
    if not isinstance(message, MessageV0):
        return {}
    lookups = [
        {
            "accountKey": str(lookup.account_key),
            "writableIndexes": list(lookup.writable_indexes),
            "readonlyIndexes": list(lookup.readonly_indexes),
        }
        for lookup in message.address_table_lookups
    ]
    return {"addressTableLookups": lookups}


def _inner(execution: Execution, *, parse: bool) -> Iterator[dict[str, Any]]:
    keys = execution.keys.all
    for index, group in enumerate(execution.meta.inner_instructions()):
        if group:
            inner = [_inner_instruction(keys, one, parse=parse) for one in group]
            yield {"index": index, "instructions": inner}


def _inner_instruction(keys: Sequence[Pubkey], inner: Any, *, parse: bool) -> dict[str, Any]:
    instruction, height = inner.instruction(), inner.stack_height()
    if not parse:
        return _raw_instruction(instruction, height)
    accounts = [str(keys[index]) for index in instruction.accounts]
    return parsed(keys[instruction.program_id_index], bytes(instruction.data), accounts, height)


def _lamports(accounts: Sequence[Account | None]) -> list[int]:
    return [0 if account is None else account.lamports for account in accounts]


def _token_balances(balances: Sequence[TokenBalance]) -> list[dict[str, Any]]:
    rows = []
    for balance in balances:
        amount = ui_amount(balance.amount, balance.decimals)
        if amount["uiAmount"] <= _TINY:
            amount["uiAmount"] = None
        rows.append(
            {
                "accountIndex": balance.index,
                "mint": str(balance.mint),
                "owner": str(balance.owner),
                "programId": str(balance.program),
                "uiTokenAmount": amount,
            }
        )
    return rows
