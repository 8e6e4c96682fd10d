"""Errors of transactions as the RPC writes them, from what the runtime gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from solders.transaction_status import InstructionErrorBorshIO, InstructionErrorCustom

if TYPE_CHECKING:
    from solders.transaction_status import TransactionErrorType

_PREFIX = "TransactionError"


def failure(error: TransactionErrorType) -> Any:
    """`{"InstructionError": [0, {"Custom": 1}]}`, `"AccountNotFound"` and their like.

    What `to_json` of the library says is another dialect: `[0, 1]`.
    """
    kind = type(error).__name__.removeprefix(_PREFIX)
    if kind == "InstructionError":
        return {kind: [error.index, _instruction_failure(error.err)]}  # type: ignore[union-attr]
    if kind == "DuplicateInstruction":
        return {kind: error.index}  # type: ignore[union-attr]
    if kind in ("InsufficientFundsForRent", "ProgramExecutionTemporarilyRestricted"):
        return {kind: {"account_index": error.account_index}}  # type: ignore[union-attr]
    return str(error).rpartition(".")[2]


def in_words(error: Any) -> str:
    """As the RPC's messages begin it."""
    if isinstance(error, dict) and "InstructionError" in error:
        index, what = error["InstructionError"]
        told = (
            f"custom program error: {what['Custom']:#x}"
            if isinstance(what, dict) and "Custom" in what
            else what
        )
        return f"Error processing Instruction {index}: {told}"
    return _WORDS.get(error, json.dumps(error)) if isinstance(error, str) else json.dumps(error)


def _instruction_failure(error: Any) -> Any:
    if isinstance(error, InstructionErrorCustom):
        return {"Custom": error.code}
    if isinstance(error, InstructionErrorBorshIO):
        return {"BorshIoError": error.value}
    return str(error).rpartition(".")[2]


_WORDS = {
    "AlreadyProcessed": "This transaction has already been processed",
    "BlockhashNotFound": "Blockhash not found",
    "AccountNotFound": "Attempt to debit an account but found no record of a prior credit.",
    "InsufficientFundsForFee": "Insufficient funds for fee",
}
