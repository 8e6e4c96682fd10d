"""The host's end of the stream between it and one child."""

from __future__ import annotations

import asyncio
import socket
from array import array
from typing import TYPE_CHECKING

from tempa.engines.host.protocol import Frames, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.engines.host.protocol import Message

_READ_BYTES = 256 * 1024
# What a dead child can have left in the socket's buffer is less; who writes more is not that child.
_DRAIN_READS_MAX = 16


class Channel:
    """Hears a child's messages while the event loop runs, and writes without waiting."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_message: Callable[[Message], None] | None = None
        self._on_garbage: Callable[[], None] | None = None
        self._frames = Frames()
        self._unsent = memoryview(b"")
        self._rights: list[tuple[int, int, array[int]]] = []
        self._socket, self.childs_end = socket.socketpair()
        self._socket.setblocking(False)
        self._open = False

    def listen(self, on_message: Callable[[Message], None], on_garbage: Callable[[], None]) -> None:
        """Hear from now on: each message, and, once, that what came is none. To be called once."""
        self._on_message, self._on_garbage = on_message, on_garbage
        self._open = True
        self._loop.add_reader(self._socket, self._read)

    def send(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Send bytes, now or when the child reads, and with the first of them copies of descriptors.

        To be called once; the descriptors stay open until `close`.
        """
        self._unsent = memoryview(data)
        self._rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))]
        self._write()
        if self._unsent:
            self._loop.add_writer(self._socket, self._write)

    def _write(self) -> None:
        try:
            sent = self._socket.sendmsg([self._unsent], self._rights, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError:  # the child is dead; the zygote will say how it died
            sent = len(self._unsent)
        self._unsent, self._rights = self._unsent[sent:], []
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> bool:
        """Hear one piece; whether there may be more."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._stop_reading()
            return False
        assert self._on_message
        assert self._on_garbage
        try:
            for message in self._frames.feed(data):
                self._on_message(message)
        except ProtocolError:
            self._stop_reading()
            self._on_garbage()
            return False
        return True

    def drain(self) -> None:
        """Hear what a dead child had still sent."""
        for _ in range(_DRAIN_READS_MAX):
            if not self._open or not self._read():
                break

    def _stop_reading(self) -> None:
        # Not the same as the child's death: it may have closed its end, or a grandchild may hold it.
        self._open = False
        self._loop.remove_reader(self._socket)

    def close(self) -> None:
        """Close both ends; the child's is the host's copy."""
        self._stop_reading()
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self.childs_end.close()
