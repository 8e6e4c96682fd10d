"""Mint extensions of Token-2022 that a test may want: how they are asked for, how long they are.

Lengths are of the value in the mint's account (solana-program/token-2022, interface/src/extension). What asks
for one runs before `initializeMint2`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solders.instruction import Instruction

from tempa.testing.devchain.instructions import writes
from tempa.testing.devchain.programs import TOKEN_2022

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

MINT_BYTES = 82
_ACCOUNT_BYTES = 165  # an extended mint is padded to this, so that it is never taken for an account
_NOBODY = bytes(32)

# The numbers that stand in the account, with the names that jsonParsed gives them.
NAMES = {
    1: "transferFeeConfig",
    2: "transferFeeAmount",
    3: "mintCloseAuthority",
    4: "confidentialTransferMint",
    5: "confidentialTransferAccount",
    6: "defaultAccountState",
    7: "immutableOwner",
    8: "memoTransfer",
    9: "nonTransferable",
    10: "interestBearingConfig",
    11: "cpiGuard",
    12: "permanentDelegate",
    13: "nonTransferableAccount",
    14: "transferHook",
    15: "transferHookAccount",
    16: "confidentialTransferFeeConfig",
    17: "confidentialTransferFeeAmount",
    18: "metadataPointer",
    19: "tokenMetadata",
    20: "groupPointer",
    21: "tokenGroup",
    22: "groupMemberPointer",
    23: "tokenGroupMember",
    24: "confidentialMintBurn",
    25: "scaledUiAmountConfig",
    26: "pausableConfig",
    27: "pausableAccount",
}


@dataclass(frozen=True, slots=True)
class Extension:
    """`name` as in jsonParsed, `data` of the instruction that asks for it, bytes of its value in the mint."""

    name: str
    data: bytes
    size_bytes: int


def transfer_fee(basis_points: int, fee_max: int, authority: Pubkey) -> Extension:
    """A share of each transfer stays behind."""
    who = b"\1" + bytes(authority)
    return Extension(
        "transferFeeConfig", b"\x1a\0" + who + who + struct.pack("<HQ", basis_points, fee_max), 108
    )


def scaled_ui(multiplier: float, authority: Pubkey) -> Extension:
    """What people are shown is another number than what is there."""
    return Extension("scaledUiAmountConfig", b"\x2b\0" + bytes(authority) + struct.pack("<d", multiplier), 56)


def interest(basis_points: int, authority: Pubkey) -> Extension:
    """What people are shown grows with time."""
    return Extension(
        "interestBearingConfig", b"\x21\0" + bytes(authority) + struct.pack("<h", basis_points), 52
    )


def transfer_hook(program: Pubkey, authority: Pubkey) -> Extension:
    """Another program has a say in each transfer."""
    return Extension("transferHook", b"\x24\0" + bytes(authority) + bytes(program), 64)


def confidential(authority: Pubkey) -> Extension:
    """Balances may be hidden."""
    return Extension("confidentialTransferMint", b"\x1b\0" + bytes(authority) + b"\1" + _NOBODY, 65)


def permanent_delegate(delegate: Pubkey) -> Extension:
    """Somebody may move everybody's tokens."""
    return Extension("permanentDelegate", b"\x23" + bytes(delegate), 32)


def pausable(authority: Pubkey) -> Extension:
    """Somebody may stop all transfers."""
    return Extension("pausableConfig", b"\x2c\0" + bytes(authority), 33)


def default_frozen() -> Extension:
    """New accounts are frozen until somebody thaws them."""
    return Extension("defaultAccountState", b"\x1c\0\2", 1)


def non_transferable() -> Extension:
    """Nobody can pass it on."""
    return Extension("nonTransferable", b"\x20", 0)


def asked(extension: Extension, mint: Pubkey) -> Instruction:
    """The instruction that gives a mint an extension."""
    return Instruction(TOKEN_2022, extension.data, [writes(mint)])


def mint_bytes(extensions: tuple[Extension, ...]) -> int:
    """How long the account of a mint with these extensions is."""
    if not extensions:
        return MINT_BYTES
    return _ACCOUNT_BYTES + 1 + sum(4 + extension.size_bytes for extension in extensions)
