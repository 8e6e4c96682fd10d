"""What a transaction's instructions say: single transfers, their labels, memos.

Only told about, never counted: money is what the balances show. Nodes lag behind the programs (p-token's
batch has no logs and no inner instructions, and may come unparsed): what is not understood yields nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.base58 import decode
from tempa.settlement.answer import UnreadableError, digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tempa.settlement.answer import Instruction

SYSTEM = "11111111111111111111111111111111"
TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"  # noqa: S105 - an address, and public
TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"  # noqa: S105 - the same
WRAPPED_SOL = "So11111111111111111111111111111111111111112"
_TOKEN_PROGRAMS = {TOKEN, TOKEN_2022}
MEMO = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
_MEMO_PROGRAMS = {"Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo", MEMO}
_BATCH = 255
_DATA_LETTERS_MAX = 1536  # of base58: more than a legacy transaction. Decoding takes quadratic time (0.3 ms)


@dataclass(slots=True)
class Transfer:
    """One movement into `destination`. `labels`: the instruction's further accounts, multisig signers too.

    `authority`: who may move what is in the source, or None (a mint).
    """

    destination: str
    authority: str | None
    amount: int
    labels: tuple[str, ...]


def memos(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """In the order they ran, wherever they stand: wallets put them before and behind the transfer."""
    told = (_memo(one) for one in instructions if one.program in _MEMO_PROGRAMS)
    return tuple(_storable(memo) for memo in told if memo is not None)


def transfers(instructions: Iterable[Instruction]) -> Iterator[Transfer]:
    """Those that can be read, in the order they ran."""
    for instruction in instructions:
        if instruction.program == SYSTEM or instruction.program in _TOKEN_PROGRAMS:
            try:
                yield from _transfers(instruction)
            except (UnreadableError, LookupError, TypeError, ValueError):
                continue


def _memo(instruction: Instruction) -> str | None:
    if isinstance(instruction.parsed, str):
        return instruction.parsed
    try:
        return _data(instruction).decode()
    except ValueError:
        return None


def _storable(memo: str) -> str:
    """No database keeps U+0000 in text, and a lone surrogate is no character: a payer chooses these bytes."""
    return memo.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _data(instruction: Instruction) -> bytes:
    data = instruction.data
    if isinstance(data, bytes):
        return data
    if len(data) > _DATA_LETTERS_MAX:
        raise ValueError("more data than a transaction holds")
    return decode(data)


def _transfers(instruction: Instruction) -> Iterator[Transfer]:
    parsed = instruction.parsed
    if isinstance(parsed, dict):
        yield from _parsed(parsed["type"], parsed["info"])
    elif parsed is None and instruction.program == SYSTEM:
        yield from _system(_data(instruction), instruction.accounts)
    elif parsed is None:
        yield from _token(_data(instruction), instruction.accounts)


def _parsed(kind: object, info: Mapping[str, Any]) -> Iterator[Transfer]:
    if kind in {"transfer", "transferChecked", "transferWithSeed", "transferCheckedWithFee"}:
        yield Transfer(info["destination"], _authority(info), _amount(info), _labels(info))
    elif kind in {"mintTo", "mintToChecked"}:
        yield Transfer(info["account"], None, _amount(info), _labels(info))


def _labels(info: Mapping[str, Any]) -> tuple[str, ...]:
    """A node takes reference keys for the signers of a multisig. Those of SOL it does not show at all."""
    return tuple(label for label in info.get("signers", ()) if isinstance(label, str))


def _authority(info: Mapping[str, Any]) -> str:
    """Of SOL it is the source itself. A node calls any authority with accounts behind it a multisig."""
    return str(info.get("authority") or info.get("multisigAuthority") or info["source"])


def _amount(info: Mapping[str, Any]) -> int:
    """Net of the fee, where the instruction itself names it."""
    if "lamports" in info:
        return digits(str(info["lamports"]))
    if "tokenAmount" not in info:
        return digits(info["amount"])
    fee = info["feeAmount"]["amount"] if "feeAmount" in info else "0"
    return digits(info["tokenAmount"]["amount"]) - digits(fee)


def _system(data: bytes, accounts: Sequence[str]) -> Iterator[Transfer]:
    """2 is `transfer`, 11 `transferWithSeed`, whose source's base stands between."""
    kind, amount = int.from_bytes(data[:4], "little"), _u64(data, 4)
    if kind == 2:
        yield Transfer(accounts[1], accounts[0], amount, tuple(accounts[2:]))
    elif kind == 11:
        yield Transfer(accounts[2], accounts[0], amount, tuple(accounts[3:]))


def _token(data: bytes, accounts: Sequence[str]) -> Iterator[Transfer]:
    match data[0]:
        case 3:  # transfer: source, destination, authority
            yield Transfer(accounts[1], accounts[2], _u64(data, 1), tuple(accounts[3:]))
        case 12:  # transferChecked: source, mint, destination, authority
            yield Transfer(accounts[2], accounts[3], _u64(data, 1), tuple(accounts[4:]))
        case 26 if data[1] == 1:  # transferCheckedWithFee: amount, decimals, fee
            yield Transfer(accounts[2], accounts[3], _u64(data, 2) - _u64(data, 11), tuple(accounts[4:]))
        case 7 | 14:  # mintTo, mintToChecked: mint, account, authority
            yield Transfer(accounts[1], None, _u64(data, 1), tuple(accounts[3:]))
        case _ if data[0] == _BATCH:
            yield from _batch(data, accounts)


def _batch(data: bytes, accounts: Sequence[str]) -> Iterator[Transfer]:
    """p-token: for each instruction the number of its accounts, the length of its data, its data."""
    at, used = 1, 0
    while at < len(data):
        count, size_bytes = data[at], data[at + 1]
        inner = data[at + 2 : at + 2 + size_bytes]
        yield from _token(inner, accounts[used : used + count])
        at, used = at + 2 + size_bytes, used + count


def _u64(data: bytes, at: int) -> int:
    if len(data) < at + 8:
        raise ValueError("cut short")
    return int.from_bytes(data[at : at + 8], "little")
