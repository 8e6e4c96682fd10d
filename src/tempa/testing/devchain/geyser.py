"""A Geyser gRPC server for one node of a development chain, and what can go wrong with its streams.

async with GeyserServer(chain.nodes[0]) as geyser:
    ... geyser.url
    geyser.stalled = True      # all that is told from now on is lost, and the streams stand
    geyser.lose = 3            # the next three updates are lost
    geyser.cut()               # every stream breaks
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from typing import TYPE_CHECKING, Any, Self

import grpc

from tempa.core import base58
from tempa.testing.devchain import geyser_wire as wire
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.subscriptions import Cursor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tempa.testing.devchain.blocks import Block, Landed
    from tempa.testing.devchain.node import Node

_SERVICE, _METHOD = "geyser.Geyser", "Subscribe"
_REPLAY_SLOTS = 150


class GeyserServer:
    """A context manager, for one event loop.

    Args:
        node: Whose view of the chain it tells.
        token: What a client has to send as `x-token`; empty: nothing.
        replay_slots: How far back a stream may begin.
        ping_seconds: Between pings; None for none but those of `ping`.
        certificate: A private key and a certificate chain, both PEM; with one it speaks TLS.
    """

    def __init__(
        self,
        node: Node,
        *,
        token: str = "",
        host: str = "127.0.0.1",
        port: int = 0,
        replay_slots: int = _REPLAY_SLOTS,
        ping_seconds: float | None = 10.0,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.node = node
        self.token = token
        self.replay_slots = replay_slots
        self.ping_seconds = ping_seconds
        self.certificate = certificate
        self.stalled = False
        self.lose = 0
        """So many updates of what happens are lost."""
        self.garble = 0
        """So many of them come as bytes that are no message."""
        self.disturbed = asyncio.Event()
        """Set when all that were to be lost or garbled are."""
        self.copies = 1
        self.requests: list[wire.Request] = []
        """What clients asked for, in the order they did."""
        self.subscribed = asyncio.Event()
        """Set when one has, and is told what happens from now on."""
        self.answered = asyncio.Event()
        """Set when a client answers a ping."""
        self.streams: set[_Stream] = set()
        self._address = f"{host}:{port}"
        self._server: Any = None
        self.url = ""

    async def __aenter__(self) -> Self:
        options = (("grpc.so_reuseport", 0),)  # a port that is taken is an error
        self._server = grpc.aio.server(options=options)
        handler = grpc.stream_stream_rpc_method_handler(self._subscribe)
        service = grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler})
        self._server.add_generic_rpc_handlers((service,))
        port = self._listen()
        await self._server.start()
        scheme = "http" if self.certificate is None else "https"
        self.url = f"{scheme}://{self._address.rpartition(':')[0]}:{port}"
        return self

    def _listen(self) -> int:
        if self.certificate is None:
            return int(self._server.add_insecure_port(self._address))
        identity = grpc.ssl_server_credentials([self.certificate])
        return int(self._server.add_secure_port(self._address, identity))

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    def cut(self) -> int:
        """Break all streams; how many there were."""
        for stream in self.streams:
            stream.end()
        return len(self.streams)

    def ping(self) -> None:
        """Ask all clients for a sign of life."""
        self.answered.clear()
        for stream in self.streams:
            stream.say(wire.ping_update())

    def floor(self) -> int:
        """The oldest slot that a stream may begin at."""
        tip = self.node.block(Commitment.PROCESSED).slot
        return max(self.node.cluster.first_slot, tip - self.replay_slots)

    async def _subscribe(self, requests: AsyncIterator[bytes], context: Any) -> None:
        token = dict(context.invocation_metadata()).get("x-token", "")
        if not hmac.compare_digest(str(token), self.token):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "No valid auth token")
        stream = _Stream(self, context)
        self.streams.add(stream)
        try:
            await stream.run(requests)
        except wire.BadRequest as refusal:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        except _CutError:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the stream broke")
        finally:
            self.streams.discard(stream)


class _CutError(Exception):
    """The stream was told to break."""


class _Stream:
    """One client."""

    def __init__(self, server: GeyserServer, context: Any) -> None:
        self._server, self._context = server, context
        self._view: _View | None = None
        self._replies: list[bytes] = []
        self._moved = asyncio.Event()
        self._is_cut = False

    def end(self) -> None:
        self._is_cut = True
        self._moved.set()

    def say(self, message: bytes) -> None:
        self._replies.append(message)
        self._moved.set()

    async def run(self, requests: AsyncIterator[bytes]) -> None:
        listeners = self._server.node.cluster.listeners
        listeners.append(self._moved.set)
        reader = asyncio.create_task(self._read(requests))
        try:
            while not reader.done():
                await self._tell()
                await self._wait(reader)
            await reader  # the client is done, or has asked for what there is not
        finally:
            listeners.remove(self._moved.set)
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, wire.BadRequest):
                await reader

    async def _read(self, requests: AsyncIterator[bytes]) -> None:
        async for message in requests:
            request = wire.request_of(message)
            if request.is_ping:
                self._server.answered.set()
                self.say(wire.pong_update())
                continue
            self._server.requests.append(request)
            self._view = self._opened(request)
            self._server.subscribed.set()
            self._moved.set()

    def _opened(self, request: wire.Request) -> _View:
        floor = self._server.floor()
        if request.from_slot is not None and request.from_slot < floor:
            told = f"from_slot {request.from_slot} is not available, the first that is: {floor}"
            raise wire.BadRequest(told)
        return _View(self._server.node, request)

    async def _wait(self, reader: asyncio.Task[None]) -> None:
        moved = asyncio.create_task(self._moved.wait())
        done, _ = await asyncio.wait(
            {moved, reader}, timeout=self._server.ping_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        moved.cancel()
        if not done:
            self.say(wire.ping_update())

    async def _tell(self) -> None:
        self._moved.clear()
        if self._is_cut:
            raise _CutError
        replies, self._replies = self._replies, []
        news = list(self._view.news()) if self._view is not None else []
        if self._server.stalled:
            return  # lost for good
        for message in [*replies, *self._disturbed(news)]:
            await self._context.write(message)

    def _disturbed(self, news: list[bytes]) -> Iterator[bytes]:
        server = self._server
        for message in news:
            if server.lose:
                server.lose -= 1
            elif server.garble:
                server.garble -= 1
                yield message[:-1] + b"\xff"
            else:
                yield from [message] * server.copies
                continue
            if not server.lose + server.garble:
                server.disturbed.set()


class _View:
    """What one request is told of the chain, and how far it has been told."""

    def __init__(self, node: Node, request: wire.Request) -> None:
        self._node, self._request = node, request
        self._commitment = Commitment(request.commitment)
        self._cursor = Cursor(node, self._commitment, request.from_slot)
        self._steps = {step: self._first(step) for step in Commitment}

    def news(self) -> Iterator[bytes]:
        """Transactions first, then the steps of slots: no order between them is promised by real servers."""
        for landed in self._cursor.fresh():
            yield from self._transaction(landed)
        for step in Commitment:
            names = [
                name
                for name, by_commitment in self._request.slots.items()
                if step is self._commitment or not by_commitment
            ]
            for block in self._reached(step):
                if names:
                    yield wire.slot_update(names, block.slot, block.parent_slot, step.value)

    def _first(self, step: Commitment) -> int:
        """The last slot of which a step is no news."""
        newest = self._node.block(step).slot
        return newest if self._request.from_slot is None else min(newest, self._request.from_slot - 1)

    def _reached(self, step: Commitment) -> list[Block]:
        newest = self._node.block(step).slot
        blocks = self._node.cluster.blocks(self._steps[step], newest)
        self._steps[step] = max(self._steps[step], newest)
        return blocks

    def _transaction(self, landed: Landed) -> Iterator[bytes]:
        accounts = frozenset(map(str, landed.execution.keys.all))
        failed = landed.execution.err is not None
        signature, place = base58.decode(landed.signature), (landed.slot, landed.index)
        for name, wanted in self._request.transactions.items():
            if not wanted.admits(accounts, failed=failed):
                continue
            slot, index = place
            if wanted.whole:
                yield wire.transaction_update([name], slot, signature, index, landed.raw)
            else:
                yield wire.status_update([name], slot, signature, index, failed=failed)
