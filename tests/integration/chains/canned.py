"""A node that answers every call with the bytes it was given."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self


class Canned:
    """A context manager, for one event loop. `data` may be changed at any time."""

    def __init__(self, body: bytes = b"", status: int = 200, *headers: str) -> None:
        self._lines = [f"HTTP/1.1 {status} Answer", "Connection: close", *headers]
        self.body = body
        self.path = "/"

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}{self.path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))
            lines = [*self._lines, f"Content-Length: {len(self.body)}", "", ""]
            writer.write("\r\n".join(lines).encode() + self.body)
            await writer.drain()
        writer.close()
