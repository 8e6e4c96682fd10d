"""The whole development chain in one process: its nodes served over HTTP and WebSocket, and its controls.

async with DevChain() as chain:                     # by hand: chain.cluster.tick()
    ... chain.rpc_url(0), chain.ws_url(0), chain.control_url
    signature = chain.payer.send(pay_sol(chain.payer.key, chain.treasury.key, 5))
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from typing import TYPE_CHECKING, Any, Self

from tempa.testing.devchain.blocks import Mode
from tempa.testing.devchain.cluster import Cluster
from tempa.testing.devchain.control import control_app
from tempa.testing.devchain.devnet import Devnet
from tempa.testing.devchain.http import Served, rpc_app
from tempa.testing.devchain.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.asyncio.server import Server

_NODE_PATH = re.compile(r"/(?:nodes/(\d{1,3})/?)?")


class DevChain(Devnet):
    """A context manager, for one event loop.

    Args:
        mode: Consensus.
        slot_ms: Time of a slot. It counts block times; with `ticking` the slots really pass.
        ticking: Whether slots pass by themselves.
        nodes: How many there are, each at a path of its own: `/nodes/1`; the first also at `/`.
        port: Of JSON-RPC; `ws_port` and `control_port` alike. 0 picks free ones.
        clock: Block times, as Unix seconds. Without one they count from a fixed day, the same in every run.
        seed: Another one gives another genesis hash.
    """

    def __init__(
        self,
        *,
        mode: Mode = Mode.ALPENGLOW,
        slot_ms: int = 400,
        ticking: bool = False,
        nodes: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        ws_port: int = 0,
        control_port: int = 0,
        clock: Callable[[], float] | None = None,
        seed: str = "",
    ) -> None:
        super().__init__(Cluster(mode=mode, slot_ms=slot_ms, clock=clock, seed=seed), nodes)
        self._host, self._ports = host, (port, ws_port, control_port)
        self._ticking = ticking
        self._sockets: list[socket.socket] = []
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen and serve. Raises OSError if a port is taken."""
        try:
            for port in self._ports:  # one by one: those that were bound are closed if the next is taken
                listener = socket.create_server((self._host, port), backlog=1024)
                # Taken over by what it accepts: an answer's head and body would else be 40 ms apart.
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(listener)
            rpc, sockets, control = self._sockets
            servers = Served(rpc_app(self.nodes, self._number), rpc), Served(control_app(self), control)
            for served in servers:
                served.start()
            self._stack.push_async_callback(_stopped, *servers)
            server = await listen(sockets, self.nodes, self.lines, self._number)
            self._stack.push_async_callback(_closed, server)
            if self._ticking:
                ticker = asyncio.create_task(self._tick())
                self._stack.push_async_callback(_ended, ticker)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all of it. Idempotent."""
        for courier in self.couriers:
            await courier.stop()
        self.couriers.clear()
        await self._stack.aclose()
        while self._sockets:
            self._sockets.pop().close()

    def rpc_url(self, node: int = 0) -> str:
        """JSON-RPC of one node."""
        return f"http://{self._address(0)}{_path(node)}"

    def ws_url(self, node: int = 0) -> str:
        """Subscriptions of one node."""
        return f"ws://{self._address(1)}{_path(node)}"

    @property
    def control_url(self) -> str:
        """The control plane."""
        return f"http://{self._address(2)}"

    def ready(self) -> dict[str, Any]:
        """What the ready file says."""
        return {
            "rpc_url": self.rpc_url(),
            "ws_url": self.ws_url(),
            "control_url": self.control_url,
            "treasury": str(self.treasury.key),
            "mint": str(self.mint),
        }

    async def _tick(self) -> None:
        due = time.monotonic()
        while True:
            due += self.cluster.slot_ms / 1000
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.cluster.tick()

    def _address(self, which: int) -> str:
        return f"{self._host}:{self._sockets[which].getsockname()[1]}"

    def _number(self, path: str) -> int | None:
        found = _NODE_PATH.fullmatch(path)
        if found is None:
            return None
        number = int(found[1] or 0)
        return number if number < len(self.nodes) else None


def _path(node: int) -> str:
    return f"/nodes/{node}" if node else ""


async def _stopped(*servers: Served) -> None:
    await asyncio.gather(*(served.stop() for served in servers))


async def _closed(server: Server) -> None:
    for connection in list(server.connections):
        connection.transport.abort()
    server.close()
    await server.wait_closed()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
