"""What a node answers to `getTransaction`, read strictly, in any of its encodings.

`jsonParsed` lists the keys that came from lookup tables among the others; `json`, `base64` and what Geyser or
a provider's raw payload shows do not: there `meta.loadedAddresses` is appended, writable ones first. All
indexes of `meta` count in that one list. Amounts are read from integers and strings of digits only:
`uiAmount` is a float, and is scaled for some mints.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.settlement.message import read_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

U64_MAX = 2**64 - 1
_SLOT_MAX = 2**63 - 1  # what stores keep: a node that tells of a higher slot must not stop the posting
_PLACE_MAX = 2**31 - 1  # in a block, likewise: it is one node's word alone
_ERROR_LETTERS_MAX = 500
_KEYS_MAX = 256  # an index is one byte
_INSTRUCTIONS_MAX = 1024  # 64 on the outside, 64 within by today's rules: far above both


class UnreadableError(Exception):
    """This is no transaction that can be judged. `code` is one of `reasons`."""

    def __init__(self, code: str = "answer_unreadable") -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class TokenBalance:
    """What a token account held, before or after."""

    mint: str
    owner: str | None
    program: str | None
    amount: int
    decimals: int


@dataclass(slots=True)
class Instruction:
    """Of the transaction or of a program it called: `parsed` as the node read it, or accounts and data."""

    program: str
    parsed: Any
    accounts: tuple[str, ...]
    data: str | bytes


@dataclass(slots=True)
class Transaction:
    """One transaction and what it changed, by the index of the account. Amounts in base units.

    `instructions` stand in the order they ran. `error`: the chain's own as JSON text, None if it succeeded.
    """

    signature: str
    slot: int
    index: int | None
    block_time: int | None
    error: str | None
    fee: int
    keys: list[str]
    signers: set[str]
    instructions: list[Instruction]
    before: list[int]
    after: list[int]
    tokens_before: dict[int, TokenBalance]
    tokens_after: dict[int, TokenBalance]


def read_transaction(answer: object) -> Transaction:
    """Read the member `result` of an answer. Raises `UnreadableError`, and nothing else, for all else."""
    try:
        return _transaction(_object(answer))
    except (RecursionError, ValueError):  # an integer of 5,000 digits is no text
        raise UnreadableError from None


def _transaction(answer: Mapping[str, Any]) -> Transaction:
    meta = answer.get("meta")
    if meta is None:
        raise UnreadableError("meta_missing")
    meta = _object(meta)
    body = _wire(answer.get("transaction"))
    message = _object(body.get("message"))
    keys, signers = _keys(message, meta)
    error = _error(meta)
    before, after = _lamports(meta, "preBalances", len(keys)), _lamports(meta, "postBalances", len(keys))
    return Transaction(
        signature=_text(_list(body.get("signatures"))[0] if body.get("signatures") else None),
        slot=_up_to(_SLOT_MAX, answer.get("slot")),
        index=_place(answer.get("transactionIndex")),
        block_time=_time(answer.get("blockTime")),
        error=error,
        fee=_u64(meta.get("fee")),
        keys=keys,
        signers=signers,
        instructions=list(_instructions(message, meta, keys)),
        before=before,
        after=after,
        tokens_before=_tokens(meta, "preTokenBalances", len(keys)),
        tokens_after=_tokens(meta, "postTokenBalances", len(keys)),
    )


def _wire(transaction: object) -> Mapping[str, Any]:
    """The transaction as JSON, or from its bytes: `[text, "base64"]`."""
    if isinstance(transaction, list):
        if len(transaction) != 2:
            raise UnreadableError
        return read_wire(_text(transaction[0]), _text(transaction[1]))
    return _object(transaction)


def _error(meta: Mapping[str, Any]) -> str | None:
    """`err` as text. It must be there: an answer that leaves it out does not say that it succeeded."""
    if "err" not in meta:
        raise UnreadableError
    error, status = meta["err"], meta.get("status")
    if error is None and isinstance(status, dict) and "Err" in status:
        raise UnreadableError
    return None if error is None else json.dumps(error)[:_ERROR_LETTERS_MAX]


def _keys(message: Mapping[str, Any], meta: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    listed = _list(message.get("accountKeys"))
    if listed and isinstance(listed[0], dict):
        keys = [_text(_object(key).get("pubkey")) for key in listed]
        signers = {key for key, entry in zip(keys, listed, strict=True) if entry.get("signer") is True}
    else:
        keys = [_text(key) for key in listed]
        count = _u64(_object(message.get("header")).get("numRequiredSignatures"))
        signers = set(keys[:count])
        loaded = _object(meta.get("loadedAddresses") or {})
        for part in ("writable", "readonly"):
            keys += [_text(key) for key in _list(loaded.get(part) or [])]
    if not keys or len(keys) > _KEYS_MAX or len(set(keys)) != len(keys):
        raise UnreadableError
    return keys, signers


def _lamports(meta: Mapping[str, Any], name: str, count: int) -> list[int]:
    balances = _list(meta.get(name))
    if len(balances) != count:
        raise UnreadableError
    for balance in balances:
        if type(balance) is not int or not 0 <= balance <= U64_MAX:
            raise UnreadableError
    return balances


def _tokens(meta: Mapping[str, Any], name: str, count: int) -> dict[int, TokenBalance]:
    """By index. A node that did not record them says null: then nothing can be said of tokens."""
    if meta.get(name) is None:
        raise UnreadableError("meta_missing")
    balances: dict[int, TokenBalance] = {}
    for entry in _list(meta[name]):
        row = _object(entry)
        index = row.get("accountIndex")
        if type(index) is not int or not 0 <= index < count or index in balances:
            raise UnreadableError
        balances[index] = _token(row)
    return balances


def _token(row: Mapping[str, Any]) -> TokenBalance:
    shown = _object(row.get("uiTokenAmount"))
    decimals = shown.get("decimals")
    if type(decimals) is not int or not 0 <= decimals <= 255:
        raise UnreadableError
    owner, program = row.get("owner"), row.get("programId")  # old answers have neither
    return TokenBalance(
        _text(row.get("mint")),
        None if owner is None else _text(owner),
        None if program is None else _text(program),
        digits(shown.get("amount")),
        decimals,
    )


def _instructions(
    message: Mapping[str, Any], meta: Mapping[str, Any], keys: list[str]
) -> Iterator[Instruction]:
    groups: dict[int, list[Any]] = {}
    for entry in _list(meta.get("innerInstructions") or []):
        group = _object(entry)
        groups.setdefault(_u64(group.get("index")), []).extend(_list(group.get("instructions")))
    outer = _list(message.get("instructions"))
    if len(outer) + sum(map(len, groups.values())) > _INSTRUCTIONS_MAX:
        raise UnreadableError
    for index, entry in enumerate(outer):
        yield _instruction(entry, keys)
        for inner in groups.get(index, ()):
            yield _instruction(inner, keys)


def _instruction(entry: object, keys: list[str]) -> Instruction:
    row = _object(entry)
    if "parsed" in row:
        return Instruction(_text(row.get("programId")), row["parsed"], (), "")
    accounts = _list(row.get("accounts"))
    data = row.get("data")
    if not isinstance(data, (str, bytes)):
        raise UnreadableError
    if "programIdIndex" in row:
        return Instruction(
            _at(keys, row["programIdIndex"]), None, tuple(_at(keys, index) for index in accounts), data
        )
    return Instruction(_text(row.get("programId")), None, tuple(map(_text, accounts)), data)


def _at(keys: list[str], index: object) -> str:
    if type(index) is not int or not 0 <= index < len(keys):
        raise UnreadableError
    return keys[index]


def digits(value: object) -> int:
    """A u64 from its string of digits. Raises `UnreadableError`."""
    if not isinstance(value, str) or not value.isascii() or not value.isdecimal() or len(value) > 20:
        raise UnreadableError
    return _u64(int(value))


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableError
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise UnreadableError
    return value


def _u64(value: object) -> int:
    return _up_to(U64_MAX, value)


def _up_to(most: int, value: object) -> int:
    if type(value) is not int or not 0 <= value <= most:  # a bool is an int to isinstance
        raise UnreadableError
    return value


def _place(value: object) -> int | None:
    return None if value is None else _up_to(_PLACE_MAX, value)


def _time(value: object) -> int | None:
    """Unix seconds; the chain may have none. Bounded, so that every reader of dates can take it."""
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < 2**33:
        raise UnreadableError
    return value
