"""What providers send, bodies and headers: Helius raw and enhanced, QuickNode signed and gzipped, generic.

Pure: `couriers` posts it. Signatures are made here with plain hmac, apart from the code that checks them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.testing.devchain.answers import meta_json, transaction_json
from tempa.testing.devchain.parsed import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tempa.testing.devchain.bank import TokenBalance
    from tempa.testing.devchain.blocks import Landed

_NOTHING = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Post:
    """One request."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Stamp:
    """What makes a request its own: Unix seconds, and a word that never comes twice."""

    unix_seconds: int
    nonce: str


def helius_raw(batch: Sequence[Landed], secret: str, _stamp: Stamp) -> Post:
    """An array of transactions, as `getTransaction` has them in `json`. The secret goes along as it is."""
    return _helius([_raw(landed) for landed in batch], secret)


def helius_enhanced(batch: Sequence[Landed], secret: str, _stamp: Stamp) -> Post:
    """An array of stories. `tokenAmount` is a float in people's units; failed transactions are left out."""
    return _helius([_story(landed) for landed in batch if landed.execution.err is None], secret)


def quicknode(batch: Sequence[Landed], secret: str, stamp: Stamp) -> Post:
    """A stream's batch: HMAC-SHA256 over nonce, timestamp and body, in hex."""
    body = _quicknode_body(batch)
    return Post(_quicknode_headers(batch, body, secret, stamp), body)


def quicknode_gzip(batch: Sequence[Landed], secret: str, stamp: Stamp) -> Post:
    """The same, compressed; the signature is over what it unpacks to."""
    body = _quicknode_body(batch)
    headers = _quicknode_headers(batch, body, secret, stamp)
    return Post({**headers, "content-encoding": "gzip"}, gzip.compress(body, mtime=0))


def resigned(post: Post, body: bytes, secret: str) -> Post:
    """A QuickNode post with another body, signed anew."""
    headers = dict(post.headers)
    nonce, timestamp = headers["x-qn-nonce"], headers["x-qn-timestamp"]
    return Post({**headers, "x-qn-signature": _quicknode_signature(nonce, timestamp, body, secret)}, body)


def generic(batch: Sequence[Landed], secret: str, stamp: Stamp) -> Post:
    """Signatures under a Standard Webhooks signature (`whsec_` and base64 of the key)."""
    signatures = [landed.signature for landed in batch]
    body = _json({"signature": signatures[0]} if len(signatures) == 1 else {"signatures": signatures})
    name = f"msg_{stamp.nonce}"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{name}.{stamp.unix_seconds}.".encode() + body
    value = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    headers = {
        "content-type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(stamp.unix_seconds),
        "webhook-signature": f"v1,{value}",
    }
    return Post(headers, body)


MAKERS: dict[str, Callable[[Sequence[Landed], str, Stamp], Post]] = {
    "helius-raw": helius_raw,
    "helius-enhanced": helius_enhanced,
    "quicknode": quicknode,
    "quicknode-gzip": quicknode_gzip,
    "generic": generic,
}


def _helius(entries: list[dict[str, Any]], secret: str) -> Post:
    return Post({"content-type": "application/json", "authorization": secret}, _json(entries))


def _raw(landed: Landed) -> dict[str, Any]:
    return {
        "blockTime": landed.block.time,
        "indexWithinBlock": landed.index,
        "slot": landed.slot,
        "meta": meta_json(landed.execution, "json"),
        "transaction": transaction_json(landed.execution, "json"),
        "version": landed.version,
    }


def _story(landed: Landed) -> dict[str, Any]:
    execution = landed.execution
    native, tokens = _transfers(landed)
    return {
        "description": "",
        "type": "TRANSFER" if native or tokens else _NOTHING,
        "source": "SOLANA_PROGRAM_LIBRARY" if tokens else "SYSTEM_PROGRAM" if native else _NOTHING,
        "fee": execution.meta.fee(),
        "feePayer": str(execution.keys.static[0]),
        "signature": landed.signature,
        "slot": landed.slot,
        "timestamp": landed.block.time,
        "nativeTransfers": native,
        "tokenTransfers": tokens,
        "accountData": [_change(landed, index) for index in range(len(execution.keys.all))],
        "transactionError": None,
        "instructions": [],
        "events": {},
    }


def _transfers(landed: Landed) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What parsed instructions, inner ones included, tell: a p-token batch tells nothing."""
    rows = {balance.index: balance for balance in landed.execution.tokens_before}
    rows.update({balance.index: balance for balance in landed.execution.tokens_after})
    keys = [str(key) for key in landed.execution.keys.all]
    accounts = {keys[index]: balance for index, balance in rows.items()}
    native: list[dict[str, Any]] = []
    tokens: list[dict[str, Any]] = []
    for info in _told(landed):
        if "lamports" in info and "destination" in info:
            native.append(
                {
                    "fromUserAccount": info["source"],
                    "toUserAccount": info["destination"],
                    "amount": info["lamports"],
                }
            )
        elif info.get("source") in accounts and info.get("destination") in accounts:
            tokens.append(_token_transfer(info, accounts))
    return native, tokens


def _token_transfer(info: Mapping[str, Any], accounts: Mapping[str, TokenBalance]) -> dict[str, Any]:
    source, target = accounts[info["source"]], accounts[info["destination"]]
    amount = int(info["amount"] if "amount" in info else info["tokenAmount"]["amount"])
    return {
        "fromTokenAccount": info["source"],
        "toTokenAccount": info["destination"],
        "fromUserAccount": str(source.owner),
        "toUserAccount": str(target.owner),
        "tokenAmount": amount / 10**target.decimals,
        "mint": str(target.mint),
        "tokenStandard": "Fungible",
    }


def _told(landed: Landed) -> Iterator[dict[str, Any]]:
    keys = landed.execution.keys.all
    inner = [one.instruction() for group in landed.execution.meta.inner_instructions() for one in group]
    for one in [*landed.execution.transaction.message.instructions, *inner]:
        accounts = [str(keys[index]) for index in one.accounts]
        found = parsed(keys[one.program_id_index], bytes(one.data), accounts, 1).get("parsed")
        if isinstance(found, dict):
            yield found["info"]


def _change(landed: Landed, index: int) -> dict[str, Any]:
    execution = landed.execution
    before, after = execution.before[index], execution.after[index]
    lamports = (after.lamports if after else 0) - (before.lamports if before else 0)
    return {
        "account": str(execution.keys.all[index]),
        "nativeBalanceChange": lamports,
        "tokenBalanceChanges": list(_token_changes(landed, index)),
    }


def _token_changes(landed: Landed, index: int) -> Iterator[dict[str, Any]]:
    execution = landed.execution
    before = {balance.index: balance for balance in execution.tokens_before}.get(index)
    after = {balance.index: balance for balance in execution.tokens_after}.get(index)
    known = after or before
    change = (after.amount if after else 0) - (before.amount if before else 0)
    if known is not None and change:
        yield {
            "userAccount": str(known.owner),
            "tokenAccount": str(execution.keys.all[index]),
            "mint": str(known.mint),
            "rawTokenAmount": {"tokenAmount": str(change), "decimals": known.decimals},
        }


def _quicknode_body(batch: Sequence[Landed]) -> bytes:
    slots = [landed.slot for landed in batch]
    data = [_raw(landed) for landed in batch]
    metadata = {
        "batch_start_range": min(slots),
        "batch_end_range": max(slots),
        "data_size_bytes": len(_json(data)),
        "dataset": "block",
        "network": "solana-devchain",
        "blocks_reorged": [],
        "reorgs": 0,
        "keep_distance_from_tip": 0,
    }
    return _json({"data": data, "metadata": metadata})


def _quicknode_headers(batch: Sequence[Landed], body: bytes, secret: str, stamp: Stamp) -> dict[str, str]:
    slots = [landed.slot for landed in batch]
    return {
        "content-type": "application/json",
        "x-qn-nonce": stamp.nonce,
        "x-qn-timestamp": str(stamp.unix_seconds),
        "x-qn-signature": _quicknode_signature(stamp.nonce, str(stamp.unix_seconds), body, secret),
        "batch-start-range": str(min(slots)),
        "batch-end-range": str(max(slots)),
        "batch-reorgs": "0",
    }


def _quicknode_signature(nonce: str, timestamp: str, body: bytes, secret: str) -> str:
    signed = nonce.encode() + timestamp.encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
