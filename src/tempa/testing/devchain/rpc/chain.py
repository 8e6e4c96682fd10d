"""Methods about slots, blocks and blockhashes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from solders.hash import Hash

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.answers import account_keys, meta_json
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.cluster import BLOCKHASH_BLOCKS
from tempa.testing.devchain.histories import check_version, versioned_answer
from tempa.testing.devchain.rpc.call import API_VERSION, DEV_CHAIN, encoding, public_key, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.testing.devchain.blocks import Block, Landed
    from tempa.testing.devchain.node import Node
    from tempa.testing.devchain.rpc.call import Call

_BLOCKS_MAX = 500_000
_FEATURE_SET = 1
_CERTIFICATE_BYTES = 192
_EPOCH_SLOTS = 432_000


def _health(call: Call) -> str:
    behind = call.node.lag_slots
    if behind > _HEALTHY_SLOTS:
        raise RpcFault(-32005, f"Node is behind by {behind} slots", {"numSlotsBehind": behind})
    return "ok"


_HEALTHY_SLOTS = 128


def _version(_call: Call) -> dict[str, Any]:
    return {"solana-core": API_VERSION, "feature-set": _FEATURE_SET, DEV_CHAIN: True}


def _newest(call: Call) -> Block:
    return call.node.block(call.commitment(call.config(0)))


def _latest_blockhash(call: Call) -> dict[str, Any]:
    commitment = call.commitment(call.config(0))
    block = call.node.block(commitment)
    last = block.height + BLOCKHASH_BLOCKS
    return call.in_context({"blockhash": str(block.blockhash), "lastValidBlockHeight": last}, commitment)


def _is_blockhash_valid(call: Call) -> dict[str, Any]:
    commitment = call.commitment(call.config(1))
    blockhash = Hash(bytes(public_key(call.argument(0))))  # as long as a key, and as hard to read
    return call.in_context(call.node.cluster.lives(blockhash, call.node.block(commitment)), commitment)


def _certificate(call: Call) -> dict[str, Any] | None:
    """Null under tower: that is how one tells. Nobody signed it: what stands there is made up."""
    since = call.node.cluster.alpenglow_since
    if since is None:
        return None
    block_id = hashlib.sha256(f"{call.node.cluster.genesis_hash} {since}".encode()).digest()
    signed = {"signature": list(block_id * (_CERTIFICATE_BYTES // len(block_id))), "bitmap": [1]}
    return {"block": {"slot": since, "blockId": list(block_id)}, "signature": signed}


def _epoch(call: Call) -> dict[str, Any]:
    block = _newest(call)
    epoch, index = divmod(block.slot, _EPOCH_SLOTS)
    return {
        "absoluteSlot": block.slot,
        "blockHeight": block.height,
        "epoch": epoch,
        "slotIndex": index,
        "slotsInEpoch": _EPOCH_SLOTS,
        "transactionCount": None,
    }


def _block_at(node: Node, slot: int, commitment: Commitment) -> Block:
    """Raises RpcFault: -32001 gone, -32004 not there yet, -32007 skipped."""
    if slot < node.cluster.first_slot:
        first = node.cluster.first_slot
        raise RpcFault(
            -32001, f"Block {slot} cleaned up, does not exist on node. First available block: {first}"
        )
    if slot > node.block(commitment).slot:
        raise RpcFault(-32004, f"Block not available for slot {slot}")
    block = node.cluster.newest(slot)
    if block.slot != slot:
        raise RpcFault(-32007, f"Slot {slot} was skipped, or missing due to ledger jump to recent snapshot")
    return block


def _block(call: Call) -> dict[str, Any]:
    config = call.config(1)
    commitment = call.commitment(config, at_least_confirmed=True)
    block = _block_at(call.node, whole(call.argument(0), "slot"), commitment)
    parent = call.node.cluster.newest(block.slot - 1)
    answer = {
        "blockhash": str(block.blockhash),
        "previousBlockhash": str(parent.blockhash),
        "parentSlot": block.parent_slot,
        "blockHeight": block.height,
        "blockTime": block.time,
        **_details(block, config),
    }
    return answer if config.get("rewards") is False else {**answer, "rewards": []}


def _details(block: Block, config: dict[str, Any]) -> dict[str, Any]:
    details = config.get("transactionDetails") or "full"
    if details == "none":
        return {}
    if details == "signatures":
        return {"signatures": [landed.signature for landed in block.landed]}
    version = config.get("maxSupportedTransactionVersion")
    if details == "accounts":
        return {"transactions": [_accounts(landed, version) for landed in block.landed]}
    if details != "full":
        raise RpcFault(-32602, f"Invalid params: unknown variant `{details}`.")
    told = encoding(config)
    return {"transactions": [versioned_answer(landed, told, version) for landed in block.landed]}


def _accounts(landed: Landed, max_version: int | None) -> dict[str, Any]:
    check_version(landed, max_version)
    meta = meta_json(landed.execution, "jsonParsed")
    for left_out in ("innerInstructions", "logMessages", "computeUnitsConsumed", "rewards"):
        del meta[left_out]
    signatures = [str(one) for one in landed.execution.transaction.signatures]
    version = {} if max_version is None else {"version": landed.version}
    keys = {"signatures": signatures, "accountKeys": account_keys(landed.execution)}
    return {"transaction": keys, "meta": meta, **version}


def _blocks(call: Call) -> list[int]:
    """Slots of blocks from one to another, both included."""
    first = whole(call.argument(0), "slot")
    second = call.params[1] if len(call.params) > 1 else None
    by_config = isinstance(second, dict)
    commitment = call.commitment(call.config(1 if by_config else 2), at_least_confirmed=True)
    newest = call.node.block(commitment).slot
    last = newest if second is None or by_config else min(whole(second, "slot"), newest)
    if last - first > _BLOCKS_MAX:
        raise RpcFault(-32602, f"Slot range too large; max {_BLOCKS_MAX}")
    return [block.slot for block in call.node.cluster.blocks(first - 1, last)]


def _blocks_with_limit(call: Call) -> list[int]:
    first, limit = whole(call.argument(0), "slot"), whole(call.argument(1), "limit")
    if limit > _BLOCKS_MAX:
        raise RpcFault(-32602, f"Limit too large; max {_BLOCKS_MAX}")
    newest = call.node.block(call.commitment(call.config(2), at_least_confirmed=True)).slot
    return [block.slot for block in call.node.cluster.blocks(first - 1, newest)[:limit]]


def _block_time(call: Call) -> int | None:
    return _block_at(call.node, whole(call.argument(0), "slot"), Commitment.CONFIRMED).time


METHODS: dict[str, Callable[[Call], Any]] = {
    "getHealth": _health,
    "getVersion": _version,
    "getSlot": lambda call: _newest(call).slot,
    "getBlockHeight": lambda call: _newest(call).height,
    "getEpochInfo": _epoch,
    "getGenesisHash": lambda call: call.node.cluster.genesis_hash,
    "getAgGenesisCert": _certificate,
    "getLatestBlockhash": _latest_blockhash,
    "isBlockhashValid": _is_blockhash_valid,
    "getBlock": _block,
    "getBlocks": _blocks,
    "getBlocksWithLimit": _blocks_with_limit,
    "getBlockTime": _block_time,
    "getFirstAvailableBlock": lambda call: call.node.cluster.first_slot,
    "minimumLedgerSlot": lambda call: call.node.cluster.first_slot,
}
