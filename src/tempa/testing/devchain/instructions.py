"""Instructions as wallets and programs build them: token programs, associated accounts, memo.

The first byte of a token instruction's data is its number, the same in SPL Token and Token-2022; what belongs
to an extension of Token-2022 has a second one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from solders.instruction import AccountMeta, Instruction
from solders.system_program import TransferParams
from solders.system_program import transfer as _system_transfer

from tempa.testing.devchain.programs import ASSOCIATED_TOKEN, MEMO, SYSTEM, TOKEN, associated_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solders.pubkey import Pubkey

_BATCH = 255  # of p-token only: several instructions of its own in one
_TRANSFER_FEE = 26


def reads(key: Pubkey, *, signs: bool = False) -> AccountMeta:
    """An account that is only looked at."""
    return AccountMeta(key, signs, is_writable=False)


def writes(key: Pubkey, *, signs: bool = False) -> AccountMeta:
    """An account that may change."""
    return AccountMeta(key, signs, is_writable=True)


def labelled(instruction: Instruction, *references: Pubkey) -> Instruction:
    """The same with reference keys behind its accounts, as Solana Pay has it."""
    return Instruction(
        instruction.program_id, instruction.data, [*instruction.accounts, *map(reads, references)]
    )


def pay_sol(source: Pubkey, target: Pubkey, lamports: int) -> Instruction:
    """The system program's transfer."""
    return _system_transfer(TransferParams(from_pubkey=source, to_pubkey=target, lamports=lamports))


def pay(
    source: Pubkey, target: Pubkey, authority: Pubkey, amount: int, program: Pubkey = TOKEN
) -> Instruction:
    """`transfer`: it names no mint."""
    data = struct.pack("<BQ", 3, amount)
    return Instruction(program, data, [writes(source), writes(target), reads(authority, signs=True)])


def pay_checked(
    source: Pubkey,
    mint: Pubkey,
    target: Pubkey,
    authority: Pubkey,
    amount: int,
    decimals: int,
    program: Pubkey = TOKEN,
) -> Instruction:
    """`transferChecked`."""
    data = struct.pack("<BQB", 12, amount, decimals)
    return Instruction(program, data, _checked_accounts(source, mint, target, authority))


def pay_with_fee(
    source: Pubkey,
    mint: Pubkey,
    target: Pubkey,
    authority: Pubkey,
    amount: int,
    decimals: int,
    fee: int,
    program: Pubkey,
) -> Instruction:
    """`transferCheckedWithFee` of Token-2022: the fee is told, and must be the right one."""
    data = struct.pack("<BBQBQ", _TRANSFER_FEE, 1, amount, decimals, fee)
    return Instruction(program, data, _checked_accounts(source, mint, target, authority))


def batch(instructions: Sequence[Instruction]) -> Instruction:
    """p-token's batch: no logs, no inner instructions, several transfers."""
    parts = [bytes([len(part.accounts), len(part.data)]) + part.data for part in instructions]
    accounts = [meta for part in instructions for meta in part.accounts]
    return Instruction(TOKEN, bytes([_BATCH]) + b"".join(parts), accounts)


def mint_to(
    mint: Pubkey, target: Pubkey, authority: Pubkey, amount: int, program: Pubkey = TOKEN
) -> Instruction:
    """New units out of nothing."""
    data = struct.pack("<BQ", 7, amount)
    return Instruction(program, data, [writes(mint), writes(target), reads(authority, signs=True)])


def close(account: Pubkey, rent_to: Pubkey, owner: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Close a token account; its lamports go to `rent_to` without a system transfer."""
    return Instruction(program, b"\x09", [writes(account), writes(rent_to), reads(owner, signs=True)])


def freeze(account: Pubkey, mint: Pubkey, authority: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Nothing goes in or out until it is thawed."""
    return Instruction(program, b"\x0a", [writes(account), reads(mint), reads(authority, signs=True)])


def approve(
    account: Pubkey, delegate: Pubkey, owner: Pubkey, amount: int, program: Pubkey = TOKEN
) -> Instruction:
    """Let another key move up to `amount`."""
    data = struct.pack("<BQ", 4, amount)
    return Instruction(program, data, [writes(account), reads(delegate), reads(owner, signs=True)])


def revoke(account: Pubkey, owner: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Take back what `approve` allowed."""
    return Instruction(program, b"\x05", [writes(account), reads(owner, signs=True)])


def sync_native(account: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """Count the lamports that lie in an account of wrapped SOL."""
    return Instruction(program, b"\x11", [writes(account)])


def open_account(account: Pubkey, mint: Pubkey, owner: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """`initializeAccount3`, of an account that was created before."""
    return Instruction(program, b"\x12" + bytes(owner), [writes(account), reads(mint)])


def open_mint(
    mint: Pubkey, decimals: int, authority: Pubkey, freezer: Pubkey | None = None, program: Pubkey = TOKEN
) -> Instruction:
    """`initializeMint2`, of an account that was created before."""
    may_freeze = b"\0" if freezer is None else b"\1" + bytes(freezer)
    data = bytes([20, decimals]) + bytes(authority) + may_freeze
    return Instruction(program, data, [writes(mint)])


def open_associated(payer: Pubkey, owner: Pubkey, mint: Pubkey, program: Pubkey = TOKEN) -> Instruction:
    """`createIdempotent` of the associated token program."""
    account = associated_account(owner, mint, program)
    accounts = [writes(payer, signs=True), writes(account), reads(owner), reads(mint), reads(SYSTEM)]
    return Instruction(ASSOCIATED_TOKEN, b"\1", [*accounts, reads(program)])


def recover_nested(wallet: Pubkey, owner_mint: Pubkey, nested_mint: Pubkey) -> Instruction:
    """Move what lies in an associated account of an associated account up to the wallet's own.

    The one way to a transfer by another program that needs no program of ours.
    """
    owner = associated_account(wallet, owner_mint)
    nested, target = associated_account(owner, nested_mint), associated_account(wallet, nested_mint)
    accounts = [writes(nested), reads(nested_mint), writes(target), reads(owner), reads(owner_mint)]
    return Instruction(ASSOCIATED_TOKEN, b"\2", [*accounts, writes(wallet, signs=True), reads(TOKEN)])


def memo(text: str, *signers: Pubkey) -> Instruction:
    """A line for people, and for who sorts payments."""
    return Instruction(MEMO, text.encode(), [reads(signer, signs=True) for signer in signers])


def _checked_accounts(source: Pubkey, mint: Pubkey, target: Pubkey, authority: Pubkey) -> list[AccountMeta]:
    return [writes(source), reads(mint), writes(target), reads(authority, signs=True)]
