"""Methods about transactions: sending them, and what became of them."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from tempa.core.base58 import decode as unbase58
from tempa.testing.devchain.admission import PACKET_V1_BYTES, RpcFault
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.histories import history_row, transaction_answer
from tempa.testing.devchain.rpc.call import encoding, public_key, signature, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.testing.devchain.blocks import Landed
    from tempa.testing.devchain.rpc.call import Call

STATUSES_MAX = 256
HISTORY_MAX = 1_000
_RECENT_BLOCKS = 300  # final ones that a node finds without searching its history
_TEXT_MAX = PACKET_V1_BYTES * 2


def _send(call: Call) -> str:
    config = call.config(1)
    raw = _unpacked(call.argument(0), encoding(config, "base58", ("base58", "base64")))
    return call.node.cluster.submit(raw, skip_preflight=config.get("skipPreflight") is True)


def _unpacked(text: Any, by: str) -> bytes:
    if not isinstance(text, str) or len(text) > _TEXT_MAX:
        raise RpcFault(-32602, f"{by} encoded transaction too large, or no text")
    try:
        return base64.b64decode(text, validate=True) if by == "base64" else unbase58(text)
    except (binascii.Error, ValueError) as error:
        raise RpcFault(-32602, f"invalid {by} encoding: {error}") from error


def _transaction(call: Call) -> dict[str, Any] | None:
    config = call.config(1)
    commitment = call.commitment(config, at_least_confirmed=True)
    landed = call.node.find(signature(call.argument(0)), commitment)
    if landed is None:
        return None
    return transaction_answer(landed, encoding(config), config.get("maxSupportedTransactionVersion"))


def _statuses(call: Call) -> dict[str, Any]:
    asked = call.argument(0)
    if not isinstance(asked, list):
        raise RpcFault(-32602, "Invalid params: invalid type, expected a sequence.")
    if len(asked) > STATUSES_MAX:
        raise RpcFault(-32602, f"Too many inputs provided; max {STATUSES_MAX}")
    search = call.config(1).get("searchTransactionHistory") is True
    rows = [_status(call, signature(one), search=search) for one in asked]
    return call.in_context(rows, Commitment.PROCESSED)


def _status(call: Call, wanted: str, *, search: bool) -> dict[str, Any] | None:
    landed = call.node.find(wanted, Commitment.PROCESSED)
    if landed is None or not (search or _is_recent(call, landed)):
        return None
    commitment = call.node.commitment_of(landed.slot)
    assert commitment is not None, "the node sees it"
    above = call.node.block(Commitment.PROCESSED).height - landed.block.height
    err = landed.execution.err
    return {
        "slot": landed.slot,
        "confirmations": None if commitment is Commitment.FINALIZED else above,
        "err": err,
        "status": {"Ok": None} if err is None else {"Err": err},
        "confirmationStatus": commitment.value,
    }


def _is_recent(call: Call, landed: Landed) -> bool:
    return call.node.block(Commitment.FINALIZED).height - landed.block.height <= _RECENT_BLOCKS


def _history(call: Call) -> list[dict[str, Any]]:
    config = call.config(1)
    commitment = call.commitment(config, at_least_confirmed=True)
    address = str(public_key(call.argument(0)))
    limit = whole(config.get("limit", HISTORY_MAX), "limit")
    if not 1 <= limit <= HISTORY_MAX:
        raise RpcFault(-32602, f"Invalid limit; max {HISTORY_MAX}")
    rows = _between(call.node.history(address, commitment), config, call)
    return [history_row(landed, _reached(call, landed)) for landed in rows[:limit]]


def _between(rows: list[Landed], config: dict[str, Any], call: Call) -> list[Landed]:
    """What follows `before` and comes before `until`.

    A `before` that the node does not know ends the search with nothing. An `until` that it does not know is
    no bound at all (solana-labs/solana#24620): the newest page comes, whatever was asked.
    """
    before, until = config.get("before"), config.get("until")
    if before is not None:
        bound = call.node.cluster.find(signature(before))
        if bound is None:
            return []
        rows = rows[_place(rows, bound) :]
    if until is not None:
        bound = call.node.cluster.find(signature(until))
        rows = rows if bound is None else rows[: _place(rows, bound, after=False)]
    return rows


def _place(rows: list[Landed], bound: Landed, *, after: bool = True) -> int:
    """Where a bound stands in the rows, which need not name it: then its slot decides."""
    if bound in rows:
        return rows.index(bound) + after
    above = [landed for landed in rows if landed.slot > bound.slot]
    same = [landed for landed in rows if landed.slot == bound.slot]
    return len(above) + (len(same) if not after else 0)


def _reached(call: Call, landed: Landed) -> Commitment:
    commitment = call.node.commitment_of(landed.slot)
    assert commitment is not None, "the node sees it"
    return commitment


METHODS: dict[str, Callable[[Call], Any]] = {
    "sendTransaction": _send,
    "getTransaction": _transaction,
    "getSignatureStatuses": _statuses,
    "getSignaturesForAddress": _history,
}
