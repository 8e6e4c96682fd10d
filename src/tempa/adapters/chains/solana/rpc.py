"""A node of Solana by its JSON-RPC, at finality: a `tempa.settlement.ports.Chain`."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tempa.adapters.chains.solana.bucket import TokenBucket
from tempa.adapters.chains.solana.jsonrpc import JsonRpc
from tempa.core.base58 import is_address, is_signature
from tempa.settlement.ports import (
    AccountState,
    Blockhash,
    Found,
    NotFound,
    Sighting,
    SignatureStatus,
    Trouble,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.adapters.chains.solana.jsonrpc import Result
    from tempa.webhooks.ports import Sender

_STATUSES_MAX = 256  # of one getSignatureStatuses call
_PAGE_MAX = 1000  # of one getSignaturesForAddress call
_VERSION_MAX = 1  # v1 is live since September 2026; with 0 a node answers -32015 to each of its payments
_COMMITMENTS = {"processed", "confirmed", "finalized"}
_NUMBER_MAX = 2**63 - 1  # of slots, heights and times: a store keeps no more, and a node that says so lies

_Row = TypeVar("_Row")


class SolanaRpc:
    """One node. `close` does not close `sender`, which others may use.

    Args:
        url: http or https; may hold a key.
        sender: The transport. Its `body_seconds` should be the deadline of a call: the default of one second
            suits webhooks.
        name: For people; host and port of the URL if None.
        rate_per_second: What the node's plan allows; more calls wait for their turn.
        burst: How many may go at once.
        timeout_seconds: For one call.
        patience_seconds: How long a call may wait for its turn.
        encoding: `jsonParsed`, or `json`, which also shows the reference keys of SOL transfers one by one.
        commitment: `finalized`; anything less is money that may vanish, and only for tests of that.
    """

    def __init__(
        self,
        url: str,
        sender: Sender,
        *,
        name: str | None = None,
        rate_per_second: float = 100.0,
        burst: int = 50,
        timeout_seconds: float = 10.0,
        patience_seconds: float = 10.0,
        encoding: str = "jsonParsed",
        commitment: str = "finalized",
        bucket: TokenBucket | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rpc = JsonRpc(
            name or urlsplit(url).netloc.rpartition("@")[2],
            url,
            sender,
            bucket or TokenBucket(rate_per_second, burst),
            timeout_seconds=timeout_seconds,
            patience_seconds=patience_seconds,
            sleep=sleep,
        )
        self._encoding = encoding
        self._commitment = {"commitment": commitment}

    @property
    def name(self) -> str:
        """For people: without the key that the URL may hold."""
        return self._rpc.name

    async def get_transaction(self, signature: str) -> Found | NotFound | Trouble:
        """The transaction at finality."""
        options = {
            "encoding": self._encoding,
            "maxSupportedTransactionVersion": _VERSION_MAX,
            **self._commitment,
        }
        result = await self._rpc.call("getTransaction", signature, options)
        if isinstance(result, Trouble):
            return result
        if result.value is None:
            return NotFound(self.name)
        if not isinstance(result.value, dict):
            return self._unreadable("getTransaction")
        return Found(result.value, self.name)

    async def signatures_for_address(
        self,
        address: str,
        *,
        before: str | None = None,
        limit: int = _PAGE_MAX,
        min_context_slot: int | None = None,
    ) -> list[Sighting] | Trouble:
        """One page of an account's history, newest first; the order within a slot differs from node to node.

        `until` is never sent: a node that does not know it answers with the newest page, as if all were new.
        """
        options: dict[str, Any] = {"limit": min(limit, _PAGE_MAX), **self._commitment}
        if before is not None:
            options["before"] = before
        if min_context_slot is not None:
            options["minContextSlot"] = min_context_slot
        result = await self._rpc.call("getSignaturesForAddress", address, options)
        if isinstance(result, Trouble):
            return result
        return self._all(result.value, _sighting, "getSignaturesForAddress")

    async def statuses(self, signatures: Sequence[str]) -> list[SignatureStatus | None] | Trouble:
        """How far transactions have come, in the order asked; looked for in all of history."""
        found: list[SignatureStatus | None] = []
        for start in range(0, len(signatures), _STATUSES_MAX):
            asked = list(signatures[start : start + _STATUSES_MAX])
            result = await self._rpc.call("getSignatureStatuses", asked, {"searchTransactionHistory": True})
            if isinstance(result, Trouble):
                return result
            rows = self._all(_value(result), _status, "getSignatureStatuses")
            if isinstance(rows, Trouble):
                return rows
            if len(rows) != len(asked):
                return self._unreadable("getSignatureStatuses")
            found += rows
        return found

    async def account(self, address: str, *, min_context_slot: int | None = None) -> AccountState | Trouble:
        """An account as the node parses it, and as of which slot."""
        options: dict[str, Any] = {"encoding": "jsonParsed", **self._commitment}
        if min_context_slot is not None:
            options["minContextSlot"] = min_context_slot
        result = await self._rpc.call("getAccountInfo", address, options)
        if isinstance(result, Trouble):
            return result
        value, slot = _value(result), _slot(result)
        if slot is None or not (value is None or isinstance(value, dict)):
            return self._unreadable("getAccountInfo")
        return AccountState(slot, value)

    async def slot(self) -> int | Trouble:
        """The newest slot that is final."""
        return await self._number("getSlot")

    async def block_height(self) -> int | Trouble:
        """What the last valid height of a blockhash is measured by; skipped slots have no block."""
        return await self._number("getBlockHeight")

    async def latest_blockhash(self) -> Blockhash | Trouble:
        """What a transaction may be signed on now, and up to which height it is good for."""
        result = await self._rpc.call("getLatestBlockhash", self._commitment)
        if isinstance(result, Trouble):
            return result
        value = _value(result)
        told = value if isinstance(value, dict) else {}
        height = _whole(told.get("lastValidBlockHeight"))
        if height is None or not is_address(told.get("blockhash")):  # a hash is as long as an address
            return self._unreadable("getLatestBlockhash")
        return Blockhash(told["blockhash"], height)

    async def send(self, raw: bytes) -> str | Trouble:
        """Hand in a signed transaction; its signature. The node does not try it first: the chain decides.

        A node that has it already answers the same. `maxRetries` 0: who asks sends it again, or does not.
        """
        options = {"encoding": "base64", "skipPreflight": True, "maxRetries": 0}
        result = await self._rpc.call("sendTransaction", base64.b64encode(raw).decode("ascii"), options)
        if isinstance(result, Trouble):
            return result
        return str(result.value) if is_signature(result.value) else self._unreadable("sendTransaction")

    async def genesis_hash(self) -> str | Trouble:
        """Which chain this is."""
        result = await self._rpc.call("getGenesisHash")
        if isinstance(result, Trouble):
            return result
        return str(result.value) if is_address(result.value) else self._unreadable("getGenesisHash")

    async def close(self) -> None:
        """Nothing of its own is open."""

    async def _number(self, method: str) -> int | Trouble:
        result = await self._rpc.call(method, self._commitment)
        if isinstance(result, Trouble):
            return result
        number = _whole(result.value)
        return self._unreadable(method) if number is None else number

    def _all(self, rows: object, read: Callable[[Any], _Row], method: str) -> list[_Row] | Trouble:
        """Every row, or none: a page with a hole would be taken for complete."""
        if not isinstance(rows, list):
            return self._unreadable(method)
        try:
            return [read(row) for row in rows]
        except ValueError:
            return self._unreadable(method)

    def _unreadable(self, method: str) -> Trouble:
        return self._rpc.trouble("answer_unreadable", method)


def _value(result: Result) -> Any:
    return result.value.get("value") if isinstance(result.value, dict) else result.value


def _slot(result: Result) -> int | None:
    context = result.value.get("context") if isinstance(result.value, dict) else None
    return _whole(context.get("slot")) if isinstance(context, dict) else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _NUMBER_MAX else None


def _sighting(row: Any) -> Sighting:
    slot = _whole(row.get("slot")) if isinstance(row, dict) else None
    if slot is None or not is_signature(row.get("signature")) or "err" not in row:
        raise ValueError("no row of a history")
    memo = row.get("memo")
    return Sighting(
        signature=row["signature"],
        slot=slot,
        failed=row["err"] is not None,
        block_time=_whole(row.get("blockTime")),
        memo=memo if isinstance(memo, str) else None,
    )


def _status(row: Any) -> SignatureStatus | None:
    if row is None:
        return None
    slot = _whole(row.get("slot")) if isinstance(row, dict) else None
    if slot is None or "err" not in row or row.get("confirmationStatus") not in _COMMITMENTS:
        raise ValueError("no status")
    return SignatureStatus(slot, row["err"] is not None, row["confirmationStatus"])
