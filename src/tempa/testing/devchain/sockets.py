"""The WebSocket side of a node: subscriptions, and what can go wrong with a connection."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.rpc.call import Call
from tempa.testing.devchain.subscriptions import KINDS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from websockets.asyncio.server import Server, ServerConnection

    from tempa.testing.devchain.node import Node
    from tempa.testing.devchain.subscriptions import Subscription

_FIRST_ID = 1


class Line:
    """How the connections of one node behave: `copies` of each notification, none at all while `stalled`."""

    def __init__(self) -> None:
        self.stalled = False
        self.copies = 1
        self.open: set[ServerConnection] = set()

    def cut(self) -> int:
        """Break all connections without a word; how many there were."""
        broken = list(self.open)
        for connection in broken:
            connection.transport.abort()
        return len(broken)


async def listen(
    sock: socket.socket, nodes: Sequence[Node], lines: Sequence[Line], number_of: Callable[[str], int | None]
) -> Server:
    """Serve all nodes at one socket; the path says which is meant."""

    async def converse(connection: ServerConnection) -> None:
        assert connection.request is not None, "the handshake was made"
        number = number_of(connection.request.path)
        if number is None:
            await connection.close(1008, "no such node")
            return
        await _Session(connection, nodes[number], lines[number]).run()

    return await serve(converse, sock=sock, compression=None, ping_interval=None)


class _Session:
    """One connection."""

    def __init__(self, connection: ServerConnection, node: Node, line: Line) -> None:
        self._connection, self._node, self._line = connection, node, line
        self._subscriptions: dict[int, Subscription] = {}
        self._ids = itertools.count(_FIRST_ID)
        self._moved = asyncio.Event()

    async def run(self) -> None:
        self._node.cluster.listeners.append(self._moved.set)
        self._line.open.add(self._connection)
        teller = asyncio.create_task(self._tell())
        try:
            async for message in self._connection:
                if not self._line.stalled:
                    await self._send(self._answer(message))
                    self._moved.set()
        except ConnectionClosed:
            pass  # by us, on purpose, or by them
        finally:
            teller.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await teller
            self._line.open.discard(self._connection)
            self._node.cluster.listeners.remove(self._moved.set)

    async def _tell(self) -> None:
        while True:
            await self._moved.wait()
            self._moved.clear()
            for number, subscription in list(self._subscriptions.items()):
                for value in list(subscription.news()):
                    await self._notify(number, subscription, value)
                if subscription.is_over:
                    self._subscriptions.pop(number, None)

    async def _notify(self, number: int, subscription: Subscription, value: Any) -> None:
        if self._line.stalled:
            return  # lost for good: a socket has no memory
        params = {"result": value, "subscription": number}
        message = {"jsonrpc": "2.0", "method": subscription.notification, "params": params}
        for _ in range(self._line.copies):
            await self._send(message)

    async def _send(self, message: dict[str, Any]) -> None:
        await self._connection.send(json.dumps(message, separators=(",", ":")))

    def _answer(self, message: str | bytes) -> dict[str, Any]:
        try:
            asked = json.loads(message)
        except ValueError:
            return _error(None, RpcFault(-32700, "Parse error"))
        number = asked.get("id") if isinstance(asked, dict) else None
        try:
            return {"jsonrpc": "2.0", "result": self._called(asked), "id": number}
        except RpcFault as fault:
            return _error(number, fault)

    def _called(self, asked: Any) -> Any:
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            raise RpcFault(-32600, "Invalid request")
        method, params = asked["method"], asked.get("params") or []
        self._node.calls[method] = self._node.calls.get(method, 0) + 1
        if method.endswith("Unsubscribe"):
            return self._ended(params)
        if method not in KINDS:
            raise RpcFault(-32601, "Method not found")
        number = next(self._ids)
        self._subscriptions[number] = KINDS[method](Call(self._node, params))
        return number

    def _ended(self, params: list[Any]) -> bool:
        if not params or self._subscriptions.pop(params[0], None) is None:
            raise RpcFault(-32602, "Invalid subscription id.")
        return True


def _error(number: Any, fault: RpcFault) -> dict[str, Any]:
    told: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        told["data"] = fault.data
    return {"jsonrpc": "2.0", "error": told, "id": number}
