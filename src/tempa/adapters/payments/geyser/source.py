"""One Geyser stream: the status of each transaction that names the treasury, and the steps of slots.

A stream can begin at an earlier slot, so that a connection that was cut misses nothing, as long as the server
keeps that slot. It wants its pings answered.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import grpc

from tempa.adapters.payments.geyser import wire
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached
from tempa.settlement.slots import SlotChain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from tempa.settlement.ports import Told

_DETAIL_LENGTH_MAX = 200
_PORTS = {"http": 80, "https": 443}
_NOT_THE_SLOT = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""Refusals that an earlier slot is no reason for. For that, servers have no status in common."""


class GeyserSource:
    """A stream from one server.

    - `url`: http or https; its user is the token (`https://TOKEN@host:port`), sent as `x-token`. No log
      shows it.
    - `silence_seconds`: the longest time without a step of a slot.
    - `timeout_seconds`: until the first of them.
    - `message_bytes_max`: the status of a transaction has a hundred bytes, a whole one some thousands.
    - `roots_pem`: whom https trusts; None for those that gRPC brings along.
    """

    name = "geyser"

    def __init__(
        self,
        url: str,
        *,
        commitment: str = "finalized",
        silence_seconds: float = 10.0,
        timeout_seconds: float = 10.0,
        message_bytes_max: int = 131_072,
        roots_pem: bytes | None = None,
    ) -> None:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        self._target = f"{host}:{parts.port or _PORTS[parts.scheme]}"
        self._is_encrypted = parts.scheme == "https"
        token = unquote(parts.username or "")
        if not (token.isascii() and token.isprintable()):
            raise ValueError("a token is plain ASCII")
        self._metadata = (("x-token", token),) if token else ()
        self._commitment = commitment
        self._silence_seconds, self._timeout_seconds = silence_seconds, timeout_seconds
        self._message_bytes_max, self._roots_pem = message_bytes_max, roots_pem

    async def listen(
        self, addresses: Sequence[str], from_slot: int | None = None
    ) -> AsyncGenerator[Told, None]:
        """One connection: see `PushSource`. From now on only, if the server has forgotten `from_slot`."""
        async with self._channel() as channel:
            for start in dict.fromkeys((from_slot, None)):
                call = channel.stream_stream(wire.SUBSCRIBE)(metadata=self._metadata)
                stream = _Stream(call, self._timeout_seconds, self._silence_seconds)
                request = wire.subscription(addresses, self._commitment, start)
                async with aclosing(stream.told(request)) as telling:
                    async for told in telling:
                        yield told
                if start is None or not stream.is_refused:
                    yield stream.end
                    return

    def _channel(self) -> Any:
        options = (
            ("grpc.max_receive_message_length", self._message_bytes_max),
            ("grpc.use_local_subchannel_pool", 1),  # else the library's own waits come on top of ours
            ("grpc.enable_http_proxy", 0),  # as the server's other calls: the environment decides nothing
        )
        if self._is_encrypted:
            trust = grpc.ssl_channel_credentials(self._roots_pem)
            return grpc.aio.secure_channel(self._target, trust, options)
        return grpc.aio.insecure_channel(self._target, options)


class _Stream:
    """One call. `end` says why it is over; `is_refused`: the server took the call, and not what was asked."""

    def __init__(self, call: Any, timeout_seconds: float, silence_seconds: float) -> None:
        self._call = call
        self._silence_seconds = silence_seconds
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + timeout_seconds
        self._slots = SlotChain()
        self._is_begun = False
        self.is_refused = False
        self.end = Gap(GapReason.LOST)

    async def told(self, request: bytes) -> AsyncGenerator[Told, None]:
        """Everything until it ends."""
        try:
            await self._say(request)
            while (message := await self._next()) is not None:
                for told in await self._heard(message):
                    yield told
            self.end = self._ended(await self._call.code(), await self._call.details())
        except TimeoutError:
            self.end = self._silence()
        except asyncio.InvalidStateError:  # it ended while we spoke
            self.end = self._ended(await self._call.code(), await self._call.details())
        except grpc.aio.AioRpcError as error:
            self.end = self._ended(error.code(), error.details())
        finally:
            self._call.cancel()

    async def _say(self, request: bytes) -> None:
        async with asyncio.timeout_at(self._deadline):
            await self._call.write(request)

    async def _next(self) -> bytes | None:
        """The next message; None at the end. Raises TimeoutError without a slot, whatever else may come."""
        if self._loop.time() > self._deadline:
            raise TimeoutError
        async with asyncio.timeout_at(self._deadline):
            message = await self._call.read()
        return None if message is grpc.aio.EOF else bytes(message)

    async def _heard(self, message: bytes) -> list[Told]:
        """What a message tells. One that is none of ours tells nothing."""
        try:
            update = wire.read(message)
        except wire.MalformedError:
            return []
        if isinstance(update, wire.Ping):
            await self._say(wire.answer_to_ping())
        if not isinstance(update, wire.Slot | wire.Transaction):
            return []
        begun: list[Told] = [] if self._is_begun else [Gap(GapReason.CONNECTED)]
        self._is_begun = True
        if isinstance(update, wire.Transaction):
            return [*begun, Pushed(update.signature, update.slot, message)]
        self._deadline = self._loop.time() + self._silence_seconds
        return [*begun, *self._step(update)]

    def _step(self, step: wire.Slot) -> list[Told]:
        if step.status != wire.SLOT_FINALIZED:
            return []
        reached = Reached(step.slot)
        if self._slots.follows(step.slot, step.parent):
            return [reached]
        return [Gap(GapReason.SKIPPED, f"slot {step.slot} builds on one that was not told of"), reached]

    def _silence(self) -> Gap:
        if not self._is_begun:
            return Gap(GapReason.REFUSED, "nobody answers in time")
        return Gap(GapReason.SILENT, "no slot was told of; the connection is made anew")

    def _ended(self, code: Any, details: str | None) -> Gap:
        self.is_refused = not self._is_begun and code not in _NOT_THE_SLOT
        reason = GapReason.LOST if self._is_begun else GapReason.REFUSED
        return Gap(reason, f"{code.name}: {details}"[:_DETAIL_LENGTH_MAX])
