"""One request and its answer, message by message: for answers that go on, and clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

SECONDS = 5  # what no signal may take longer than


class Exchange:
    """Calls an ASGI app. The body is sent as the test sends it; the answer is read as it comes."""

    def __init__(self, app: ASGIApp, method: str, url: str, headers: Mapping[str, str]) -> None:
        path, _, query = url.partition("?")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "server": ("tempa.test", 80),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        self._app = app
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._grown = asyncio.Condition()
        self.taken = 0  # messages of the body that were read
        self.start: Message | None = None
        self.body = b""
        self.ended = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._call())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await self.done()

    async def _call(self) -> None:
        await self._app(self._scope, self._receive, self._send)

    def send_body(self, chunk: bytes, *, more: bool = False) -> None:
        self._incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def done(self) -> None:
        """Wait until the app has returned; raises what it raised."""
        assert self._task is not None
        async with asyncio.timeout(SECONDS):
            await self._task

    async def until(self, text: str) -> None:
        """Wait until the answer's body has `text` in it."""
        await self._until(lambda: text in self.body.decode())

    async def started(self) -> int:
        """Wait for the status."""
        await self._until(lambda: self.start is not None)
        assert self.start is not None
        return int(self.start["status"])

    def header(self, name: str) -> str | None:
        assert self.start is not None
        found: dict[bytes, bytes] = dict(self.start["headers"])
        value = found.get(name.lower().encode())
        return None if value is None else value.decode()

    async def _until(self, met: Any) -> None:
        async with asyncio.timeout(SECONDS), self._grown:
            await self._grown.wait_for(met)

    async def _receive(self) -> Message:
        message = await self._incoming.get()
        self.taken += 1
        return message

    async def _send(self, message: Message) -> None:
        async with self._grown:
            if message["type"] == "http.response.start":
                self.start = message
            else:
                self.body += message.get("body", b"")
                self.ended = not message.get("more_body", False)
            self._grown.notify_all()
