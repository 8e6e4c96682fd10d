"""What a refund's transaction does, exactly: its memo, the account that it goes to, and one transfer.

    memo      tempa:refund:<id>                        by which the chain's history tells of it
    account   createIdempotent of the wallet's own     tokens only; does nothing where it stands
    transfer  transferChecked, or of the system program

A signer is given these steps, and its bytes are held against them before they are kept: they can pay nobody
else, nothing else, and no other amount.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.settlement.derive import ASSOCIATED_TOKEN, associated_account
from tempa.settlement.message import MalformedError, read_wire
from tempa.settlement.model import SOL
from tempa.settlement.transfers import MEMO, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.settlement.model import Treasury, TreasuryAccount
    from tempa.settlement.refunds import Refund

_CREATE_IDEMPOTENT = b"\x01"
_TRANSFER = 2  # of the system program
_TRANSFER_CHECKED = 12  # of both token programs


@dataclass(frozen=True, slots=True)
class Role:
    """An account of a step: whether it may change, and whether its key signs."""

    address: str
    is_writable: bool = False
    is_signer: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a transaction."""

    program: str
    accounts: tuple[Role, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be signed, by `payer` alone, who pays the fee too."""

    payer: str
    steps: tuple[Step, ...]


def memo_of(refund_id: str) -> str:
    """What stands in the transaction of a refund, for people and for `was_sent`."""
    return f"tempa:refund:{refund_id}"


def row_of(refund: Refund, treasury: Treasury) -> TreasuryAccount | str:
    """The treasury's account that a refund is paid from; else in words why there is none now."""
    if refund.cluster != treasury.cluster:
        return f"it was paid on another chain ({refund.cluster})"
    pinned = (refund.asset, refund.account)
    row = next((row for row in treasury.accounts if (row.asset, row.address) == pinned), None)
    if row is None:
        return f"the account that it was paid to, {refund.account}, is not the treasury's any more"
    if refund.destination in _own(treasury):
        return "it would go to the treasury itself"
    return row if row.refusal is None else f"nothing is paid from its account now: {row.refusal}"


def _own(treasury: Treasury) -> set[str]:
    return {place for row in treasury.accounts for place in (row.address, row.owner)}


def order_of(refund: Refund, row: TreasuryAccount) -> Order:
    """What sends a refund's money from `row` to its destination."""
    payment = _of_sol(refund, row) if refund.asset == SOL else _of_tokens(refund, row)
    # The memo stands before the transfer: an account of Token-2022 may ask for that.
    return Order(row.owner, (Step(MEMO, (), memo_of(refund.id).encode()), *payment))


def _of_sol(refund: Refund, row: TreasuryAccount) -> tuple[Step, ...]:
    accounts = (
        Role(row.address, is_writable=True, is_signer=True),
        Role(refund.destination, is_writable=True),
    )
    return (Step(SYSTEM, accounts, struct.pack("<IQ", _TRANSFER, refund.amount)),)


def _of_tokens(refund: Refund, row: TreasuryAccount) -> tuple[Step, ...]:
    assert row.program is not None, "a token has a program"
    target = associated_account(refund.destination, refund.asset, row.program)
    opening = (
        Role(row.owner, is_writable=True, is_signer=True),
        Role(target, is_writable=True),
        Role(refund.destination),
        Role(refund.asset),
        Role(SYSTEM),
        Role(row.program),
    )
    moving = (
        Role(row.address, is_writable=True),
        Role(refund.asset),
        Role(target, is_writable=True),
        Role(row.owner, is_signer=True),
    )
    data = struct.pack("<BQB", _TRANSFER_CHECKED, refund.amount, row.decimals)
    return (Step(ASSOCIATED_TOKEN, opening, _CREATE_IDEMPOTENT), Step(row.program, moving, data))


def deviation(raw: bytes, order: Order) -> str | None:
    """What signed bytes do that the order does not say, in words; None: they do exactly that."""
    try:
        message = read_wire(base64.b64encode(raw).decode("ascii"), "base64")["message"]
        done = [_written(message, one) for one in message["instructions"]]
    except (MalformedError, LookupError):
        return "the bytes cannot be read"
    if message["header"]["numRequiredSignatures"] != 1 or message["accountKeys"][0] != order.payer:
        return "others sign than the treasury alone"
    return _difference(done, order.steps)


_Written = tuple[str, tuple[str, ...], bytes]


def _written(message: Mapping[str, Any], instruction: Mapping[str, Any]) -> _Written:
    """Accounts of lookup tables have no key in the message: a LookupError."""
    keys = message["accountKeys"]
    accounts = tuple(keys[place] for place in instruction["accounts"])
    return keys[instruction["programIdIndex"]], accounts, instruction["data"]


def _difference(done: Sequence[_Written], steps: Sequence[Step]) -> str | None:
    asked = [(step.program, tuple(role.address for role in step.accounts), step.data) for step in steps]
    if len(done) != len(asked):
        return f"there are {len(done)} instructions, not {len(asked)}"
    for number, (one, other) in enumerate(zip(done, asked, strict=True), 1):
        if one != other:
            return f"instruction {number} is not what was asked for"
    return None
