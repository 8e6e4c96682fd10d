"""What a WebSocket subscription has to tell, apart from how it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tempa.testing.devchain.accounts import account_json
from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.rpc.call import encoding, public_key, signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tempa.testing.devchain.blocks import Landed
    from tempa.testing.devchain.node import Node
    from tempa.testing.devchain.rpc.call import Call


class Subscription(Protocol):
    """`notification` is the method of what is sent; `news` what has come since it was asked last."""

    @property
    def notification(self) -> str: ...
    @property
    def is_over(self) -> bool: ...
    def news(self) -> Iterator[Any]: ...


class Cursor:
    """How far one reader has read what landed, at one commitment.

    What lies there at first is not news, but for what landed from `from_slot` on.
    """

    def __init__(self, node: Node, commitment: Commitment, from_slot: int | None = None) -> None:
        self._node, self._commitment = node, commitment
        block = node.block(commitment)
        self._slot, self._count = block.slot, len(block.landed)
        if from_slot is not None and from_slot <= self._slot:
            self._slot, self._count = from_slot, 0

    def fresh(self) -> list[Landed]:
        """What came since. What lands again on another fork comes again."""
        newest = self._node.block(self._commitment)
        if newest.slot < self._slot:  # a fork took blocks away, or the node fell behind
            return []
        found: list[Landed] = []
        for block in self._node.cluster.blocks(self._slot - 1, newest.slot):
            found += block.landed[self._count if block.slot == self._slot else 0 :]
        self._slot, self._count = newest.slot, len(newest.landed)
        return found


class _Logs:
    notification = "logsNotification"
    is_over = False

    def __init__(self, call: Call) -> None:
        self._mentioned = _mentioned(call.argument(0))
        self._cursor = Cursor(call.node, call.commitment(call.config(1)))

    def news(self) -> Iterator[Any]:
        for landed in self._cursor.fresh():
            if self._mentioned is None or self._mentioned in map(str, landed.execution.keys.all):
                execution = landed.execution
                told = {"signature": landed.signature, "err": execution.err, "logs": execution.meta.logs()}
                yield {"context": {"slot": landed.slot}, "value": told}


class _Signature:
    notification = "signatureNotification"

    def __init__(self, call: Call) -> None:
        config = call.config(1)
        self._node, self._signature = call.node, signature(call.argument(0))
        self._commitment = call.commitment(config)
        self._tells_of_arrival = config.get("enableReceivedNotification") is True
        self.is_over = False

    def news(self) -> Iterator[Any]:
        if self._tells_of_arrival and self._found(Commitment.PROCESSED):
            self._tells_of_arrival = False
            yield self._told(Commitment.PROCESSED, "receivedSignature")
        landed = self._found(self._commitment)
        if landed is not None:
            self.is_over = True
            yield self._told(self._commitment, {"err": landed.execution.err})

    def _found(self, commitment: Commitment) -> Landed | None:
        return self._node.find(self._signature, commitment)

    def _told(self, commitment: Commitment, value: Any) -> dict[str, Any]:
        return {"context": {"slot": self._node.block(commitment).slot}, "value": value}


class _Account:
    notification = "accountNotification"
    is_over = False

    def __init__(self, call: Call) -> None:
        config = call.config(1)
        self._node, self._key = call.node, public_key(call.argument(0))
        self._commitment = call.commitment(config)
        self._encoding = encoding(config, "base58", ("base58", "base64", "jsonParsed"))
        self._last = self._node.account(self._key, self._commitment)

    def news(self) -> Iterator[Any]:
        account = self._node.account(self._key, self._commitment)
        if account == self._last:
            return
        self._last = account
        shown = account_json(self._node.cluster.bank, account, self._encoding)
        yield {"context": {"slot": self._node.block(self._commitment).slot}, "value": shown or _CLOSED}


class _Slots:
    notification = "slotNotification"
    is_over = False

    def __init__(self, call: Call) -> None:
        self._node, self._slot = call.node, call.node.block(Commitment.PROCESSED).slot

    def news(self) -> Iterator[Any]:
        newest = self._node.block(Commitment.PROCESSED).slot
        root = self._node.block(Commitment.FINALIZED).slot
        for block in self._node.cluster.blocks(self._slot, newest):
            yield {"slot": block.slot, "parent": block.parent_slot, "root": root}
        self._slot = max(self._slot, newest)


class _Roots:
    notification = "rootNotification"
    is_over = False

    def __init__(self, call: Call) -> None:
        self._node, self._slot = call.node, call.node.block(Commitment.FINALIZED).slot

    def news(self) -> Iterator[Any]:
        newest = self._node.block(Commitment.FINALIZED).slot
        for block in self._node.cluster.blocks(self._slot, newest):
            yield block.slot
        self._slot = max(self._slot, newest)


def _mentioned(wanted: Any) -> str | None:
    if wanted in ("all", "allWithVotes"):
        return None
    mentions = wanted.get("mentions") if isinstance(wanted, dict) else None
    if not isinstance(mentions, list):
        raise RpcFault(-32602, "Invalid params: expected `all`, `allWithVotes` or `mentions`.")
    if len(mentions) != 1:
        raise RpcFault(-32602, "Invalid Request: Only 1 address supported")
    return str(public_key(mentions[0]))


# What accountSubscribe tells of an account that is gone.
_CLOSED = {
    "lamports": 0,
    "owner": "11111111111111111111111111111111",
    "executable": False,
    "rentEpoch": 0,
    "space": 0,
    "data": ["", "base64"],
}

KINDS: dict[str, Callable[[Call], Subscription]] = {
    "logsSubscribe": _Logs,
    "signatureSubscribe": _Signature,
    "accountSubscribe": _Account,
    "slotSubscribe": _Slots,
    "rootSubscribe": _Roots,
}
