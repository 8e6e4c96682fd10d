"""What a node says of a transaction that it is sent: refused with an RPC error, or taken."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction

from tempa.testing.devchain.failures import in_words
from tempa.testing.devchain.programs import SYSTEM

if TYPE_CHECKING:
    from solders.account import Account
    from solders.transaction_metadata import TransactionMetadata

PACKET_BYTES = 1232
PACKET_V1_BYTES = 4096
_V1_PREFIX = 129
_ADVANCE_NONCE = 4
_NONCE_AT = 40  # version, state and authority stand before the durable nonce


class RpcFault(Exception):  # noqa: N818 - it is an answer of the chain, not a fault of ours
    """An error of JSON-RPC, as nodes give them."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def decoded(raw: bytes) -> VersionedTransaction:
    """Raises RpcFault if it is too long, no transaction, or not signed by those who must."""
    bytes_max = PACKET_V1_BYTES if raw[:1] == bytes([_V1_PREFIX]) else PACKET_BYTES
    if len(raw) > bytes_max:
        raise RpcFault(-32602, f"decoded transaction too large: {len(raw)} bytes (max: {bytes_max} bytes)")
    try:
        transaction = VersionedTransaction.from_bytes(raw)
    except ValueError as error:
        raise RpcFault(-32602, f"failed to deserialize transaction: {error}") from error
    if not transaction.signatures or not all(transaction.verify_with_results()):
        raise RpcFault(-32003, "Transaction signature verification failure")
    return transaction


def preflight_fault(err: Any, meta: TransactionMetadata | None = None) -> RpcFault:
    """-32002: the simulation before sending did not go through."""
    data = {
        "accounts": None,
        "err": err,
        "innerInstructions": None,
        "logs": [] if meta is None else meta.logs(),
        "replacementBlockhash": None,
        "returnData": None,
        "unitsConsumed": 0 if meta is None else meta.compute_units_consumed(),
    }
    return RpcFault(-32002, f"Transaction simulation failed: {in_words(err)}", data)


def message_bytes(transaction: VersionedTransaction) -> bytes:
    """What is signed. A message is processed once, however often its signers sign it anew."""
    return bytes(to_bytes_versioned(transaction.message))


def nonce_account_index(transaction: VersionedTransaction) -> int | None:
    """The key index of the nonce account, if the transaction begins by advancing one."""
    message = transaction.message
    if not message.instructions:
        return None
    first = message.instructions[0]
    is_system = message.account_keys[first.program_id_index] == SYSTEM
    advances = is_system and bytes(first.data)[:4] == struct.pack("<I", _ADVANCE_NONCE)
    return first.accounts[0] if advances and first.accounts else None


def durable_nonce(account: Account | None) -> bytes | None:
    """The value that a nonce account has now."""
    if account is None or account.owner != SYSTEM or len(account.data) < _NONCE_AT + 32:
        return None
    return account.data[_NONCE_AT : _NONCE_AT + 32]
