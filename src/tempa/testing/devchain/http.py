"""The HTTP side of the nodes: one ASGI application, and a server for it that leaves signals alone."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Any

import uvicorn

from tempa.testing.devchain.rpc.dispatch import reply_to

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from tempa.testing.devchain.faults import Fault
    from tempa.testing.devchain.node import Node

    _Receive = Callable[[], Awaitable[Any]]
    _Send = Callable[[Any], Awaitable[None]]

_JSON = (b"content-type", b"application/json; charset=utf-8")
_HTML = (b"content-type", b"text/html")
_PAGE = b"<html><body>upstream is restarting</body></html>"
_STATUS_TEXT = b'{"error":"injected"}'
BODY_BYTES_MAX = 1_048_576


class Quiet(uvicorn.Server):
    """uvicorn without its signal handlers: Ctrl-C is the caller's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


class Served:
    """An application at a socket, until `stop`."""

    def __init__(self, app: Any, sock: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            server_header=False,
            log_level="critical",  # an answer that is cut short on purpose is an error to uvicorn
        )
        self._server, self._sock = Quiet(config), sock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Serve in the running loop; the socket listens already, so that nobody is refused meanwhile."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._sock]))

    async def stop(self) -> None:
        """Let go of all connections."""
        self._server.should_exit = self._server.force_exit = True
        if self._task is not None:
            await self._task


def rpc_app(nodes: Sequence[Node], number_of: Callable[[str], int | None]) -> Any:
    """JSON-RPC for all nodes; the path says which is meant."""

    async def app(scope: Any, receive: _Receive, send: _Send) -> None:
        number = number_of(scope["path"])
        if number is None:
            await _answer(send, 404, b"no such node")
            return
        if scope["method"] != "POST":
            await _answer(send, 405, b"Used HTTP Method is not allowed. POST is required")
            return
        body = await _body(receive)
        if body is None:
            await _answer(send, 413, b"too large")
            return
        await _converse(nodes[number], body, receive, send)

    return app


async def _converse(node: Node, body: bytes, receive: _Receive, send: _Send) -> None:
    if node.latency_seconds:
        await asyncio.sleep(node.latency_seconds)
    reply = reply_to(node, body)
    if reply.fault is None:
        await _answer(send, 200, reply.body, _JSON)
    else:
        await _break(reply.fault, reply.body, receive, send)


async def _break(fault: Fault, body: bytes, receive: _Receive, send: _Send) -> None:
    if fault.kind == "timeout":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif fault.kind == "truncated":
        await _start(send, 200, len(body), _JSON)
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    elif fault.kind == "garbage":
        await _answer(send, 200, _PAGE, _HTML)
    else:
        after = fault.retry_after
        wait = () if after is None else ((b"retry-after", str(math.ceil(after)).encode()),)
        await _answer(send, fault.status, _STATUS_TEXT, _JSON, *wait)


async def _body(receive: _Receive) -> bytes | None:
    parts, size = [], 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES_MAX:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _answer(send: _Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    await _start(send, status, len(body), *headers)
    await send({"type": "http.response.body", "body": body})


async def _start(send: _Send, status: int, size_bytes: int, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(size_bytes).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
