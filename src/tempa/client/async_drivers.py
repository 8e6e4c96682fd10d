"""Runs flows in an event loop. The counterpart of `drivers.py`, awaited."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from tempa.client.effects import Answer, Emit, Lost, Message, NextMessage, Open, Pause, Save, Send
from tempa.client.errors import NotReachable
from tempa.client.transport import answer_of, lost_of, message_of, request_options, session_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tempa.client.discovery import Server
    from tempa.client.effects import Call, Effect, Flow

T = TypeVar("T")

_CHUNK_BYTES = 65_536


class AsyncDriver:
    """One connection pool to one server, for one event loop."""

    def __init__(
        self,
        find_server: Callable[[], Server],
        transport: httpx2.AsyncBaseTransport | None,
        pause: Callable[[float], Awaitable[object]],
    ) -> None:
        self._find_server = find_server
        self._server = find_server()
        self._pause = pause
        self._session = httpx2.AsyncClient(transport=transport, **session_options(self._server))

    @property
    def server(self) -> Server:
        """Who is called."""
        return self._server

    async def close(self) -> None:
        """Give the connections back."""
        await self._session.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""
        reply = None
        try:
            while True:
                effect = flow.send(reply)
                assert not isinstance(effect, Emit), "a flow that emits is iterated"
                reply = await self._perform(effect)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    async def iterate(self, flow: Flow[None]) -> AsyncGenerator[Any, None]:
        """What the flow emits. Closing the iterator closes the flow and its stream."""
        reply, stream = None, _Stream(self)
        try:
            while True:
                try:
                    effect = flow.send(reply)
                except StopIteration:
                    return
                reply = None
                if isinstance(effect, Emit):
                    yield effect.value
                else:
                    reply = await self._perform(effect, stream)
        finally:
            flow.close()
            await stream.close()

    async def _perform(self, effect: Effect, stream: _Stream | None = None) -> Answer | Lost | Message | None:
        match effect:
            case Send(call):
                return await self._send(call)
            case Save(call, sink):
                return await self._save(call, sink.write)
            case Pause(seconds):
                await self._pause(seconds)
            case Open(call) if stream is not None:
                return await stream.open(call)
            case NextMessage() if stream is not None:
                return await stream.next()
            case _:
                raise AssertionError(f"{effect} needs a stream")
        return None

    async def _send(self, call: Call) -> Answer | Lost:
        try:
            async with self.opened(call) as response:
                return answer_of(response, await response.aread())
        except httpx2.TransportError as error:
            return self.lost(error)

    async def _save(self, call: Call, write: Callable[[bytes], None]) -> Answer | Lost:
        try:
            async with self.opened(call) as response:
                if response.status_code != 200:
                    return answer_of(response, await response.aread())
                async for chunk in response.aiter_bytes():
                    write(chunk)  # blocks for the page cache only; a thread a chunk costs more
                return answer_of(response)
        except httpx2.TransportError as error:
            return self.lost(error)

    @asynccontextmanager
    async def opened(self, call: Call) -> AsyncIterator[httpx2.Response]:
        """The response, its body still to be read."""
        body = call.body if call.body is None or isinstance(call.body, bytes) else _chunks(call.body)
        async with self._session.stream(content=body, **request_options(call, self._server)) as response:
            yield response

    def lost(self, error: httpx2.TransportError) -> Lost:
        """Why no answer came. A server that started again may have another port: look again."""
        lost = lost_of(error, self._server)
        if not lost.sent and self._server.origin == "ready file":
            with suppress(NotReachable):
                self._server = self._find_server()
        return lost


class _Stream:
    """The open stream of one iteration."""

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver
        self._held = AsyncExitStack()
        self._messages: AsyncIterator[httpx2.ServerSentEvent] | None = None

    async def open(self, call: Call) -> Answer | Lost:
        await self.close()
        try:
            response = await self._held.enter_async_context(self._driver.opened(call))
            if response.status_code != 200:
                return answer_of(response, await response.aread())
        except httpx2.TransportError as error:
            return self._driver.lost(error)
        self._messages = aiter(httpx2.EventSource(response))
        return answer_of(response)

    async def next(self) -> Message | Lost | None:
        assert self._messages is not None, "a stream is opened before it is read"
        try:
            event = await anext(self._messages, None)
        except httpx2.TransportError as error:
            return self._driver.lost(error)
        return None if event is None else message_of(event)

    async def close(self) -> None:
        self._messages = None
        await self._held.aclose()


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk
