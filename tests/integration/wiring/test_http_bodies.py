"""How slowly a body may come: uvicorn's protocol with our bounds, in a time that the test moves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from tempa.wiring.http_protocol import HttpBounds, bounded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import Receive, Scope, Send


@dataclass
class Timer:
    at: float
    ring: Callable[[], object]
    canceled: bool = False

    def cancel(self) -> None:
        self.canceled = True


@dataclass
class HandClock:
    """As much of a loop as the protocol calls. Timers ring when the test lets time pass."""

    now: float = 0.0
    timers: list[Timer] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(*args, **options)

    def call_later(self, delay: float, ring: Callable[..., object], *args: object) -> Timer:
        self.timers.append(Timer(self.now + delay, lambda: ring(*args)))
        return self.timers[-1]

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer.at <= self.now]
        self.timers = [timer for timer in self.timers if timer.at > self.now]
        for timer in due:
            if not timer.canceled:
                timer.ring()


class Sink(asyncio.Transport):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += data

    def write_eof(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


@dataclass
class Body:
    """A body on its way, to an app that does not look at it."""

    clock: HandClock
    sink: Sink
    protocol: Any

    def came(self, size_bytes: int, seconds: float = 20.0) -> bytes:
        """Let so many bytes come, and then time pass; the status line, if there was an answer."""
        self.protocol.data_received(bytes(size_bytes))
        self.clock.advance(seconds)
        return self.sink.written.split(b"\r\n")[0]


REFUSED = b"HTTP/1.1 408 Request Timeout"


@pytest.fixture
async def body() -> AsyncIterator[Body]:
    """100 bytes every 20 s, and whole after 1,000 s."""
    over = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await over.wait()

    bounds = HttpBounds(body_window_seconds=20.0, body_window_bytes=100, body_seconds=1000.0)
    config = uvicorn.Config(app, http=bounded(bounds), ws="none", log_config=None, lifespan="off")
    config.load()
    clock, sink, state = HandClock(), Sink(), uvicorn.server.ServerState()
    protocol = bounded(bounds)(config, state, {}, _loop=clock)  # type: ignore[arg-type]
    protocol.connection_made(sink)
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
    yield Body(clock, sink, protocol)
    protocol.connection_lost(None)
    over.set()
    await asyncio.gather(*state.tasks)


async def test_a_slow_body_is_read_as_long_as_it_goes_on(body: Body) -> None:
    assert [body.came(100) for _ in range(10)] == [b""] * 10
    assert body.came(99) == REFUSED


async def test_a_burst_does_not_pay_for_a_stall(body: Body) -> None:
    assert body.came(5000) == b""
    assert body.came(0) == REFUSED


async def test_even_a_body_that_goes_on_must_end(body: Body) -> None:
    assert [body.came(100) for _ in range(49)] == [b""] * 49
    assert body.came(100) == REFUSED


async def test_a_window_in_which_we_did_not_listen_does_not_count(body: Body) -> None:
    assert body.came(70_000) == b""  # more than uvicorn keeps for the app
    assert (body.sink.reading, body.came(0, 500.0)) == (False, b"")
    await body.protocol.cycle.receive()  # as the app does when it gets to it
    assert body.came(100) == b""
    assert body.came(0) == REFUSED
