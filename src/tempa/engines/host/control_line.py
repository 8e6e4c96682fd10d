"""The line between host and zygote: whole messages, and the descriptors they bring along."""

from __future__ import annotations

import os
import socket
from array import array
from typing import TYPE_CHECKING

from tempa.engines.host.protocol import Message, ProtocolError, decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKET_BYTES_MAX = 64 * 1024
_DESCRIPTORS_MAX = 2
_INT_BYTES = array("i").itemsize


class ControlLine:
    """One end. SOCK_SEQPACKET keeps a message whole, and its descriptors with it.

    A stream would need frames, and the descriptors of a message would arrive with its first byte,
    not with its last.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @staticmethod
    def pair() -> tuple[ControlLine, socket.socket]:
        """The host's end, which never waits, and the zygote's, to be inherited by it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        return ControlLine(ours), theirs

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._socket.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message. The receiver gets copies of the descriptors.

        Raises:
            OSError: the other end is gone, or (host only) has not read for hundreds of messages.
        """
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))] if descriptors else []
        self._socket.sendmsg([encode(message)], rights, socket.MSG_NOSIGNAL)

    def receive(self) -> tuple[Message | None, list[int]]:
        """The next message (None: the other end hung up) and its descriptors, which are now ours.

        Raises:
            BlockingIOError: there is none yet (host only).
            ProtocolError: not a message.
        """
        # Not socket.recv_fds: it drops its flags (Python 3.11), so what an engine starts would inherit.
        packet, rights, flags, _ = self._socket.recvmsg(
            _PACKET_BYTES_MAX, socket.CMSG_SPACE(_DESCRIPTORS_MAX * _INT_BYTES), socket.MSG_CMSG_CLOEXEC
        )
        descriptors = _descriptors(rights)
        try:
            return _decode(packet, flags), descriptors
        except ProtocolError:
            close_all(descriptors)
            raise

    def hang_up(self) -> None:
        """Let the other end read the line's end; what it still sends can be received."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def receive_with_descriptor(stream: socket.socket, bytes_max: int) -> tuple[bytes, int | None]:
    """What comes next on a stream (nothing: the other end hung up), and the descriptor it brings along."""
    data, rights, _, _ = stream.recvmsg(bytes_max, socket.CMSG_SPACE(_INT_BYTES), socket.MSG_CMSG_CLOEXEC)
    return data, next(iter(_descriptors(rights)), None)


def _descriptors(rights: list[tuple[int, int, bytes]]) -> list[int]:
    numbers = array("i")
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(data[: len(data) - len(data) % _INT_BYTES])  # a cut one is not ours
    return numbers.tolist()


def _decode(packet: bytes, flags: int) -> Message | None:
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise ProtocolError("a message or its descriptors were cut off")
    return decode(packet) if packet else None


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors that nobody wants."""
    for descriptor in descriptors:
        os.close(descriptor)
