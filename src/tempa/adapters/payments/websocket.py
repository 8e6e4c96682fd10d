"""A node's WebSocket as a source: `logsSubscribe` for each address, `slotSubscribe` to see that it lives.

Source: Solana RPC documentation, "RPC WebSocket methods". `logsSubscribe` takes one address a subscription,
and tells nothing of what came before it; notifications that are lost are not told again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from tempa.core.base58 import is_signature
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached
from tempa.settlement.slots import SlotChain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from websockets.asyncio.client import ClientConnection

    from tempa.settlement.ports import Told

_SLOT_MAX = 2**64 - 1
_DETAIL_LENGTH_MAX = 200
_FRAMES_MAX = 16  # unread ones; beyond, the socket is not read, and the server has to wait or to drop us
_CLOSE_SECONDS = 1.0
_SLOTS_ID = 0  # of the request for slots; those for addresses count from 1

# The library tells of each request line, with the key that a URL may hold, at DEBUG.
_wire_logger = logging.getLogger(f"{__name__}.wire")
_wire_logger.setLevel(logging.WARNING)


class WebSocketSource:
    """Subscriptions at one node.

    - `url`: ws or wss. It may hold a key; no log shows it.
    - `silence_seconds`: the longest time without a slot. Slots take 0.2 to 0.4 s: a node that says nothing
      for so long is stalled, though its socket stands and its pongs come.
    - `timeout_seconds`: for the connection, and again for the subscriptions.
    - `ping_seconds`: between pings, which keep middle boxes from forgetting the connection.
    - `message_bytes_max`: a node cuts the logs of a transaction at 10 kB.
    """

    name = "websocket"

    def __init__(
        self,
        url: str,
        *,
        commitment: str = "finalized",
        silence_seconds: float = 10.0,
        timeout_seconds: float = 10.0,
        ping_seconds: float = 20.0,
        message_bytes_max: int = 131_072,
    ) -> None:
        self._url, self._commitment = url, commitment
        self._silence_seconds, self._timeout_seconds = silence_seconds, timeout_seconds
        self._ping_seconds, self._message_bytes_max = ping_seconds, message_bytes_max

    async def listen(
        self, addresses: Sequence[str], from_slot: int | None = None
    ) -> AsyncGenerator[Told, None]:
        """One connection: see `PushSource`. A node replays nothing, so `from_slot` is of no use to it."""
        del from_slot
        is_open = False
        try:
            async with self._connect() as socket:
                is_open = True
                async with aclosing(self._hear(socket, addresses)) as telling:
                    async for told in telling:
                        yield told
        except (WebSocketException, OSError) as error:  # TimeoutError is an OSError
            yield Gap(GapReason.LOST if is_open else GapReason.REFUSED, _words(error))

    def _connect(self) -> connect:
        return connect(
            self._url,
            logger=_wire_logger,
            open_timeout=self._timeout_seconds,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=self._ping_seconds,
            ping_timeout=self._ping_seconds,
            max_size=self._message_bytes_max,
            max_queue=_FRAMES_MAX,
            proxy=None,  # as the server's other calls: the environment decides nothing
        )

    async def _hear(self, socket: ClientConnection, addresses: Sequence[str]) -> AsyncGenerator[Told, None]:
        loop = asyncio.get_running_loop()
        session = _Session(addresses, self._commitment)
        deadline = loop.time() + self._timeout_seconds
        for request in session.requests():
            await socket.send(request)
        while not session.is_over:
            message = await _next(socket, deadline)
            if message is None:
                yield session.silence()
                return
            for told in session.heard(message):
                if session.is_complete and isinstance(told, Reached | Gap):
                    deadline = loop.time() + self._silence_seconds
                yield told


async def _next(socket: ClientConnection, deadline: float) -> str | bytes | None:
    """The next message; None if the deadline has passed, though there may be others than what it is for."""
    if asyncio.get_running_loop().time() > deadline:
        return None
    try:
        async with asyncio.timeout_at(deadline):
            return await socket.recv()
    except TimeoutError:
        return None


class _Session:
    """What is said in one connection. `is_over`: it came to nothing."""

    def __init__(self, addresses: Sequence[str], commitment: str) -> None:
        self._addresses = dict(enumerate(addresses, start=_SLOTS_ID + 1))
        self._commitment = commitment
        self._waiting = {_SLOTS_ID, *self._addresses}
        self._refusals: dict[int, str] = {}
        self._slots = SlotChain()
        self.is_over = False

    @property
    def is_complete(self) -> bool:
        """Whether every subscription was answered. Until then no slot makes up for an answer."""
        return not self._waiting

    def requests(self) -> Iterator[str]:
        """All subscriptions, slots first: the connection is watched from the start."""
        yield _request(_SLOTS_ID, "slotSubscribe")
        for number, address in self._addresses.items():
            config = {"commitment": self._commitment}
            yield _request(number, "logsSubscribe", {"mentions": [address]}, config)

    def heard(self, message: str | bytes) -> Iterator[Told]:
        """What a message tells. One that is none of ours tells nothing."""
        try:
            body = json.loads(message)
        except (ValueError, RecursionError):
            return
        if not isinstance(body, dict):
            return
        if "method" in body:
            yield from self._notified(body, message)
        elif isinstance(body.get("id"), int) and body["id"] in self._waiting:
            yield from self._answered(body["id"], body)

    def silence(self) -> Gap:
        """What a silence of too long means."""
        if self._waiting:
            return Gap(GapReason.REFUSED, f"{len(self._waiting)} subscriptions were not answered")
        return Gap(GapReason.SILENT, "no slot was told of; the connection is made anew")

    def _answered(self, number: int, body: dict[str, Any]) -> Iterator[Told]:
        self._waiting.discard(number)
        if "error" in body or "result" not in body:
            self._refusals[number] = _error_words(body.get("error"))
        if not self._waiting:
            yield self._begun()

    def _begun(self) -> Gap:
        """Some addresses are better than none; without slots nobody would see it stall."""
        refused = "; ".join(f"{self._what(number)}: {words}" for number, words in self._refusals.items())
        unheard = self._addresses.keys() - self._refusals.keys()
        self.is_over = _SLOTS_ID in self._refusals or not unheard
        detail = f"without {refused}" if refused else ""
        return Gap(GapReason.REFUSED if self.is_over else GapReason.CONNECTED, detail)

    def _what(self, number: int) -> str:
        return self._addresses.get(number, "slots")

    def _notified(self, body: dict[str, Any], message: str | bytes) -> Iterator[Told]:
        result = _member(body.get("params"), "result")
        if body["method"] == "slotNotification":
            yield from self._slot(result)
        elif body["method"] == "logsNotification":
            signature = _member(_member(result, "value"), "signature")
            if is_signature(signature):  # a failed one too: its fee may be the treasury's
                raw = message.encode() if isinstance(message, str) else message
                yield Pushed(signature, _slot_or_none(_member(_member(result, "context"), "slot")), raw)

    def _slot(self, result: Any) -> Iterator[Told]:
        slot, root = _slot_or_none(_member(result, "slot")), _slot_or_none(_member(result, "root"))
        if slot is None or root is None:
            return
        if not self._slots.follows(slot, _slot_or_none(_member(result, "parent"))):
            yield Gap(GapReason.SKIPPED, f"slot {slot} builds on one that was not told of")
        yield Reached(root)


def _request(number: int, method: str, *params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _slot_or_none(value: Any) -> int | None:
    is_slot = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _SLOT_MAX
    return value if is_slot else None


def _error_words(error: Any) -> str:
    """The node's own."""
    words = f"{_member(error, 'message')} ({_member(error, 'code')})"
    return words[:_DETAIL_LENGTH_MAX]


def _words(error: Exception) -> str:
    """Never an exception's own text: it may hold the URL."""
    if isinstance(error, InvalidStatus):
        return f"the node answers HTTP {error.response.status_code}"
    if isinstance(error, ConnectionClosed):
        close = error.rcvd or error.sent
        return "the connection broke" if close is None else f"the connection was closed ({close.code})"
    if isinstance(error, TimeoutError):
        return "nobody answers in time"
    return f"no connection ({type(error).__name__})"
