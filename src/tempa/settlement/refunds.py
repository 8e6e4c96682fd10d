"""Refunds: money in suspense that is sent back, by a transaction; never are there two that may land.

    requested -> signed -> broadcast -> final
                   ^           |-> failed (on the chain: its money waits in suspense again)
                   '- expired <-'

The bytes of a transaction, and until which height it may land, are on disk before anybody else has them.
Another one is signed only when the chain shows at finality that the first can land no more, and has not.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tempa.core.base58 import decode, is_signature
from tempa.settlement.journal import OUTSIDE, REFUNDS, UNALLOCATED, Posting
from tempa.settlement.message import MalformedError, read_wire
from tempa.settlement.transfers import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

_ADVANCE_NONCE = 4  # of the system program: a transaction that begins with it never expires


class RefundState(StrEnum):
    """How far a refund is."""

    REQUESTED = "requested"
    SIGNED = "signed"  # on disk, and nobody has it yet
    BROADCAST = "broadcast"  # a node may have it
    EXPIRED = "expired"  # it can land no more, and has not: another may be signed
    FINAL = "final"
    FAILED = "failed"  # its money waits in suspense again


class Outcome(StrEnum):
    """How a signed transaction ended."""

    FINAL = "final"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Signed:
    """A transaction as it goes to the chain. Above `last_valid_height` it can land no more."""

    raw: bytes
    signature: str
    last_valid_height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRefund:
    """What a person asks for: the money of an anomaly, to an address that the payer has named.

    `destination` is a wallet, for tokens too; never simply the payer: an exchange's wallet credits nobody.
    """

    id: str
    anomaly_id: str
    destination: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """A transaction that was signed for a refund. `outcome` None: it may still land."""

    signature: str
    raw: bytes
    last_valid_height: int
    signed_at: datetime
    sent_at: datetime | None
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """A refund as it stands. `receipt` is the receipt's number, `account` the treasury's that it came to.

    `amount` in base units; `signature` and `slot` of the payment; `reason`: why it failed, in words.
    """

    id: str
    anomaly_id: str
    receipt: int
    cluster: str
    signature: str
    slot: int
    asset: str
    account: str
    amount: int
    destination: str
    note: str
    state: RefundState
    reason: str | None
    requested_at: datetime
    ended_at: datetime | None
    signings: tuple[Signing, ...] = ()

    @property
    def live(self) -> Signing | None:
        """The transaction that may still land."""
        return next((one for one in self.signings if one.outcome is None), None)


def fault_of(signed: Signed) -> str | None:
    """What is wrong with what a signer gave, in words; None: it may be kept."""
    try:
        body = read_wire(base64.b64encode(signed.raw).decode("ascii"), "base64")
    except MalformedError as fault:
        return f"the bytes are no transaction: {fault}"
    if not body["signatures"] or body["signatures"][0] != signed.signature:
        return "the signature is not that of the bytes"
    if not is_signature(signed.signature) or not any(decode(signed.signature)):
        return "it is not signed"
    return "it goes by a nonce, so it would never expire" if _has_nonce(body["message"]) else None


def _has_nonce(message: Mapping[str, Any]) -> bool:
    if not message["instructions"]:
        return False
    first = message["instructions"][0]
    keys = message["accountKeys"]
    program = keys[first["programIdIndex"]] if first["programIdIndex"] < len(keys) else None
    return program == SYSTEM and first["data"][:4] == _ADVANCE_NONCE.to_bytes(4, "little")


def reserving(refund: Refund) -> tuple[Posting, ...]:
    """It is nobody's no more: it is owed to who paid."""
    return (
        Posting(UNALLOCATED, refund.asset, refund.amount),
        Posting(REFUNDS, refund.asset, -refund.amount),
    )


def releasing(refund: Refund) -> tuple[Posting, ...]:
    """It could not be sent, and waits again."""
    return tuple(line._replace(amount=-line.amount) for line in reserving(refund))


def sending(refund: Refund) -> tuple[Posting, ...]:
    """It has left: what the outflow put outside is what was owed."""
    return (
        Posting(REFUNDS, refund.asset, refund.amount),
        Posting(OUTSIDE, refund.asset, -refund.amount),
    )
