"""Signs refunds with the treasury's key from a file, as `solana-keygen` writes it: a JSON array of 64 bytes.

The key stays in this process, and goes into no log, no error and no answer.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction

from tempa.settlement.ports import Trouble
from tempa.settlement.refunds import Signed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tempa.settlement.ports import Outlet
    from tempa.settlement.refund_order import Order, Step
    from tempa.settlement.refunds import Refund

_KEY_BYTES = 64  # the seed, and the public key that it makes
_FILE_BYTES_MAX = 4096
_OWNERS_ONLY = stat.S_IRUSR | stat.S_IWUSR


class KeyUnusable(Exception):  # noqa: N818 - it says what is the case
    """The key file cannot be used, and why, in words that tell nothing of the key."""


def read_keypair(path: Path, wallet: str) -> Keypair:
    """The key of `wallet`, from a file that only its owner may read. Raises `KeyUnusable`."""
    pair = _keypair(_private_text(path))
    if str(pair.pubkey()) != wallet:
        raise KeyUnusable(f"it holds the key of {pair.pubkey()}, and the treasury's wallet is {wallet}")
    return pair


def _private_text(path: Path) -> bytes:
    """Looks at the file that it has opened: the one that it reads."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait for ever
    except OSError as error:
        raise KeyUnusable(f"it cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyUnusable("it is no file")
        mode = stat.S_IMODE(status.st_mode)
        if mode & ~_OWNERS_ONLY:
            raise KeyUnusable(f"its mode is {mode:04o}, and others may get at it: chmod 600")
        return os.read(descriptor, _FILE_BYTES_MAX)
    finally:
        os.close(descriptor)


def _keypair(text: bytes) -> Keypair:
    try:
        numbers = json.loads(text)
    except (ValueError, RecursionError):
        numbers = None
    if not _is_key(numbers):
        raise KeyUnusable(f"it is no JSON array of {_KEY_BYTES} bytes, as solana-keygen writes it")
    try:
        return Keypair.from_bytes(bytes(numbers))
    except ValueError:
        raise KeyUnusable("its public key is not that of its secret one") from None


def _is_key(numbers: object) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) == _KEY_BYTES
        and all(type(number) is int and 0 <= number <= 255 for number in numbers)
    )


@dataclass(frozen=True, slots=True)
class KeypairSigner:
    """A `tempa.settlement.ports.Signer`. `outlets` are asked for a blockhash, in this order."""

    pair: Keypair
    outlets: Sequence[Outlet]

    def __repr__(self) -> str:
        return f"KeypairSigner({self.pair.pubkey()})"

    async def sign(self, refund: Refund, order: Order) -> Signed | Trouble:
        """A legacy transaction of exactly these steps."""
        if order.payer != str(self.pair.pubkey()):
            return Trouble("call_refused", "keypair", detail=f"{refund.id} is not to be paid by this key")
        answer: object = None
        for outlet in self.outlets:
            answer = await outlet.latest_blockhash()
            if not isinstance(answer, Trouble):
                raw, signature = self._signed(order, answer.text)
                return Signed(raw, signature, answer.last_valid_height)
        return answer if isinstance(answer, Trouble) else Trouble("node_unreachable", "keypair")

    def _signed(self, order: Order, blockhash: str) -> tuple[bytes, str]:
        recent = Hash.from_string(blockhash)
        steps = [_instruction(step) for step in order.steps]
        message = Message.new_with_blockhash(steps, self.pair.pubkey(), recent)
        signed = Transaction([self.pair], message, recent)
        return bytes(signed), str(signed.signatures[0])


def _instruction(step: Step) -> Instruction:
    accounts = [
        AccountMeta(Pubkey.from_string(role.address), role.is_signer, role.is_writable)
        for role in step.accounts
    ]
    return Instruction(Pubkey.from_string(step.program), step.data, accounts)
