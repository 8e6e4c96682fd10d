"""Where the rows of the fault matrix lead: receivers good and bad, names, ports at which nobody answers."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Self

from cryptography import x509

from tempa.adapters.senders.curl import CurlSender
from tempa.testing.receiver import Receiver
from tests.integration.senders.certificates import certificate, secure
from tests.integration.senders.name_server import SERVER_FAILURE, NameServer

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.receiver import Received

HERE = "127.0.0.1"
OPEN_TO_US = tuple(ip_network(one) for one in ("127.0.0.1/32", "::1/128", "255.255.255.255/32"))
_LOOPBACK = x509.IPAddress(ip_address(HERE))


class Places:
    """A context manager. `url` gives where a word of the matrix leads, `sender` may call all of it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.receiver = stack.enter_context(Receiver())
            self.at_v6 = stack.enter_context(Receiver(host="::1"))
            self.silent = stack.enter_context(socket.create_server((HERE, 0)))
            self.deaf = stack.enter_context(socket.create_server((HERE, 0), backlog=0))
            _fill(stack, self.deaf)
            self.names = stack.enter_context(_names())
            self._make_secure(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _make_secure(self, stack: ExitStack) -> None:
        paths = {
            "good": certificate(self._folder, _LOOPBACK, name="good"),
            "expired": certificate(self._folder, _LOOPBACK, name="expired", days=-1),
            "other": certificate(self._folder, x509.DNSName("other.example"), name="other"),
            "unknown": certificate(self._folder, _LOOPBACK, name="unknown"),
        }
        self.secure = {name: stack.enter_context(secure(path)) for name, path in paths.items()}
        self.secure["old"] = stack.enter_context(secure(paths["good"], newest=ssl.TLSVersion.TLSv1_1))
        self._trusted = self._folder / "trusted.pem"
        trusted = (path for name, path in paths.items() if name != "unknown")
        self._trusted.write_bytes(b"".join(path.read_bytes() for path in trusted))

    def sender(self) -> CurlSender:
        """One that may call what is here, and has little patience."""
        return CurlSender(
            OPEN_TO_US,
            connect_timeout_seconds=0.6,
            body_seconds=0.3,
            ca_file=str(self._trusted),
            resolve=self.names.addresses,
        )

    def url(self, where: str) -> str:
        """A path is one of the receiver's; `name!path` a host's at its port; a URL is itself."""
        if where.startswith("/"):
            return self.receiver.url(where)
        if "!" not in where:
            return where
        name, _, path = where.partition("!")
        if name in self.secure:
            return self.secure[name].url(path)
        ports = {"silent": self.silent, "deaf": self.deaf}
        scheme, _, at = name.rpartition("+")
        if at in ports:
            return f"{scheme or 'http'}://{HERE}:{ports[at].getsockname()[1]}{path}"
        there = self.at_v6 if name == "v6.example" else self.receiver
        return there.url(path, name)

    def arrived(self, url: str) -> list[Received]:
        """What came to a URL made here."""
        receivers = [self.receiver, self.at_v6, *self.secure.values()]
        return [
            request
            for receiver in receivers
            for request in receiver.requests
            if url.endswith(f":{receiver.port}{request.path}")
        ]


def _fill(stack: ExitStack, listener: socket.socket) -> None:
    """Fill its queue of connections: the kernel drops what knocks then, as a firewall does."""
    for _ in range(4):
        knocking = stack.enter_context(socket.socket())
        knocking.setblocking(False)
        knocking.connect_ex(listener.getsockname())


def _names() -> NameServer:
    server = NameServer()
    server.script("servfail.example", SERVER_FAILURE)
    server.script("mute.example", None)
    server.script("empty.example", [])
    server.script("private.example", ["10.0.0.1", "fd00::1"])
    server.script("metadata.example", ["169.254.169.254"])
    server.script("mapped.example", ["::ffff:10.0.0.1"])
    server.script("mixed.example", [HERE, "10.0.0.1"])
    server.script("mixed6.example", [HERE, "fd00::1"])
    server.script("v6.example", ["::1"])
    server.script("broken-v6.example", ["::1", HERE])
    return server
