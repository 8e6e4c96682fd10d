"""A server on loopback that answers each path with the bytes it was given, and hangs up."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    """An answer that says no length unless `headers` do."""
    head = "\r\n".join([f"HTTP/1.1 {status} Answer", "Connection: close", *headers, "", ""])
    return head.encode("latin-1") + body


class Canned:
    """A context manager. `requests` are the heads that came, as text."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self._answers: dict[str, bytes] = {}
        self._tls = tls
        self._listener = socket.create_server((host, port))
        self._thread = threading.Thread(target=self._serve, name="canned", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def url(self, path: str, data: bytes, host: str | None = None) -> str:
        """Where `data` is the answer from now on."""
        self._answers[path] = data
        address, port = self._listener.getsockname()
        return f"{'https' if self._tls else 'http'}://{host or address}:{port}{path}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            with contextlib.suppress(OSError), self._wrapped(connection) as talk:
                talk.settimeout(10)
                self._answer(talk)

    def _wrapped(self, connection: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection

    def _answer(self, talk: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = talk.recv(4096)
            if not piece:
                return
            head += piece
        self.requests.append(head.decode("latin-1"))
        talk.sendall(self._answers[head.split(b" ", 2)[1].decode()])
        talk.shutdown(socket.SHUT_WR)
        while talk.recv(4096):  # until the caller hangs up: closing on unread bytes would reset what was sent
            pass
