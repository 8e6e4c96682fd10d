"""A name server on loopback that lies when it is told to, and a resolver that asks it: RFC 1035, by UDP."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter, defaultdict
from ipaddress import ip_address
from itertools import count
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    _Line = Sequence[str] | int | None

A, AAAA = 1, 28
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
_ANSWER, _RECURSION = 0x8000, 0x0180
_CLASS_IN = 1
_TTL_SECONDS = 0  # nobody may keep it
_POINTER_TO_THE_NAME = 0xC00C
_HEAD = struct.Struct("!6H")
_numbers = count(1)


class NameServer:
    """Answers each name by its script, look-up by look-up; the last line stays. Unknown names: NXDOMAIN.

    A line is the addresses of both families, a response code, or None for no answer at all.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()  # questions for A: one a look-up
        self._scripts: defaultdict[str, list[Sequence[str] | int | None]] = defaultdict(
            lambda: [NO_SUCH_NAME]
        )
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, name="name-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._socket.getsockname()
        return host, port

    def script(self, name: str, *lines: _Line) -> None:
        """What it says of a name."""
        self._scripts[name] = list(lines)

    def addresses(self, host: str, timeout_seconds: float = 0.3) -> list[str]:
        """A resolver for `CurlSender`: one look-up, by a question for each family. Raises OSError."""
        found = [one for kind in (A, AAAA) for one in self._ask(host, kind, timeout_seconds)]
        return sorted(found, key=lambda one: ":" not in one)  # IPv6 first, as RFC 6724 has it

    def _ask(self, host: str, kind: int, timeout_seconds: float) -> list[str]:
        question = _question(host, kind)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(timeout_seconds)
            asking.sendto(question, self.address)
            answer = asking.recv(4096)
        assert answer[:2] == question[:2], "an answer to another question"
        _, flags, _, records, _, _ = _HEAD.unpack_from(answer)
        if flags & 0xF:
            raise socket.gaierror(socket.EAI_NONAME, f"response code {flags & 0xF}")
        return _records(answer[len(question) :], records)

    def _serve(self) -> None:
        while question := self._socket.recvfrom(4096):
            data, whence = question
            if not data:
                return
            answer = self._answer(data)
            if answer is not None:
                self._socket.sendto(answer, whence)

    def _answer(self, question: bytes) -> bytes | None:
        name, kind = _asked_for(question)
        script = self._scripts[name]
        line = script[min(self.asked[name] - (kind == AAAA), len(script) - 1)]
        self.asked[name] += kind == A
        if line is None:
            return None
        addresses = [] if isinstance(line, int) else [ip_address(one) for one in line]
        wanted = [one.packed for one in addresses if one.version == (4 if kind == A else 6)]
        code = line if isinstance(line, int) else NO_ERROR
        head = _HEAD.pack(
            *struct.unpack("!H", question[:2]), _ANSWER | _RECURSION | code, 1, len(wanted), 0, 0
        )
        records = (
            struct.pack("!HHHIH", _POINTER_TO_THE_NAME, kind, _CLASS_IN, _TTL_SECONDS, len(packed)) + packed
            for packed in wanted
        )
        return head + question[_HEAD.size :] + b"".join(records)


def _question(host: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in host.rstrip(".").split("."))
    return (
        _HEAD.pack(next(_numbers), _RECURSION, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, _CLASS_IN)
    )


def _asked_for(question: bytes) -> tuple[str, int]:
    labels, at = [], _HEAD.size
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    (kind,) = struct.unpack_from("!H", question, at + 1)
    return ".".join(labels), kind


def _records(data: bytes, number: int) -> list[str]:
    found, at = [], 0
    for _ in range(number):
        (length,) = struct.unpack_from("!H", data, at + 10)
        found.append(str(ip_address(data[at + 12 : at + 12 + length])))
        at += 12 + length
    return found
