"""Answers that are made of a transaction and its place on the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.answers import memo_of, meta_json, transaction_json

if TYPE_CHECKING:
    from tempa.testing.devchain.blocks import Commitment, Landed


def transaction_answer(landed: Landed, encoding: str, max_version: int | None) -> dict[str, Any]:
    """The result of `getTransaction`. Raises RpcFault -32015 if the version is newer than `max_version`."""
    return {
        "slot": landed.slot,
        "blockTime": landed.block.time,
        "transactionIndex": landed.index,
        **versioned_answer(landed, encoding, max_version),
    }


def versioned_answer(landed: Landed, encoding: str, max_version: int | None) -> dict[str, Any]:
    """A transaction as it stands in a block's answer; `version` only for who told which he knows."""
    check_version(landed, max_version)
    version = {} if max_version is None else {"version": landed.version}
    return {
        "transaction": transaction_json(landed.execution, encoding),
        "meta": meta_json(landed.execution, encoding),
        **version,
    }


def check_version(landed: Landed, max_version: int | None) -> None:
    """Raises RpcFault -32015, whose words name the version that has to be asked for."""
    version = landed.version
    if isinstance(version, str) or (max_version is not None and version <= max_version):
        return
    raise RpcFault(
        -32015,
        f"Transaction version ({version}) is not supported by the requesting client. Please try the request "
        f'again with the following configuration parameter: "maxSupportedTransactionVersion": {version}',
    )


def history_row(landed: Landed, commitment: Commitment) -> dict[str, Any]:
    """One row of `getSignaturesForAddress`."""
    return {
        "signature": landed.signature,
        "slot": landed.slot,
        "transactionIndex": landed.index,
        "err": landed.execution.err,
        "memo": memo_of(landed.execution),
        "blockTime": landed.block.time,
        "confirmationStatus": commitment.value,
    }
