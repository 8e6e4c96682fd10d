"""Runs flows in the calling thread."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from tempa.client.effects import Answer, Emit, Lost, Message, NextMessage, Open, Pause, Save, Send
from tempa.client.errors import NotReachable
from tempa.client.transport import answer_of, lost_of, message_of, request_options, session_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tempa.client.discovery import Server
    from tempa.client.effects import Call, Effect, Flow

T = TypeVar("T")

sleep: Callable[[float], object] = threading.Event().wait
"""Nobody sets this event: the whole time passes, or Ctrl-C ends it."""


class Driver:
    """One connection pool to one server. Safe to share between threads."""

    def __init__(
        self,
        find_server: Callable[[], Server],
        transport: httpx2.BaseTransport | None,
        pause: Callable[[float], object],
    ) -> None:
        self._find_server = find_server
        self._server = find_server()
        self._pause = pause
        self._session = httpx2.Client(transport=transport, **session_options(self._server))

    @property
    def server(self) -> Server:
        """Who is called."""
        return self._server

    def close(self) -> None:
        """Give the connections back."""
        self._session.close()

    def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""
        reply = None
        try:
            while True:
                effect = flow.send(reply)
                assert not isinstance(effect, Emit), "a flow that emits is iterated"
                reply = self._perform(effect)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
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
                    reply = self._perform(effect, stream)
        finally:
            flow.close()
            stream.close()

    def _perform(self, effect: Effect, stream: _Stream | None = None) -> Answer | Lost | Message | None:
        match effect:
            case Send(call):
                return self._send(call)
            case Save(call, sink):
                return self._save(call, sink.write)
            case Pause(seconds):
                self._pause(seconds)
            case Open(call) if stream is not None:
                return stream.open(call)
            case NextMessage() if stream is not None:
                return stream.next()
            case _:
                raise AssertionError(f"{effect} needs a stream")
        return None

    def _send(self, call: Call) -> Answer | Lost:
        try:
            with self.opened(call) as response:
                return answer_of(response, response.read())
        except httpx2.TransportError as error:
            return self.lost(error)

    def _save(self, call: Call, write: Callable[[bytes], None]) -> Answer | Lost:
        try:
            with self.opened(call) as response:
                if response.status_code != 200:
                    return answer_of(response, response.read())
                for chunk in response.iter_bytes():
                    write(chunk)
                return answer_of(response)
        except httpx2.TransportError as error:
            return self.lost(error)

    @contextmanager
    def opened(self, call: Call) -> Iterator[httpx2.Response]:
        """The response, its body still to be read."""
        with ExitStack() as files:
            body: Any = call.body
            if body is not None and not isinstance(body, bytes):
                body = files.enter_context(body.open("rb"))
            with self._session.stream(content=body, **request_options(call, self._server)) as response:
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

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._held = ExitStack()
        self._messages: Iterator[httpx2.ServerSentEvent] = iter(())

    def open(self, call: Call) -> Answer | Lost:
        self.close()
        try:
            response = self._held.enter_context(self._driver.opened(call))
            if response.status_code != 200:
                return answer_of(response, response.read())
        except httpx2.TransportError as error:
            return self._driver.lost(error)
        self._messages = iter(httpx2.EventSource(response))
        return answer_of(response)

    def next(self) -> Message | Lost | None:
        try:
            event = next(self._messages, None)
        except httpx2.TransportError as error:
            return self._driver.lost(error)
        return None if event is None else message_of(event)

    def close(self) -> None:
        self._messages = iter(())
        self._held.close()
