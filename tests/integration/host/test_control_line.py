from __future__ import annotations

import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.engines.host.control_line import ControlLine, close_all
from tempa.engines.host.protocol import Fork, Forked, Kill, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ends() -> Iterator[tuple[ControlLine, ControlLine]]:
    ours, theirs = ControlLine.pair()
    with closing(ours), closing(ControlLine(theirs)) as other:
        yield ours, other


def test_messages_keep_their_borders_and_their_descriptors(ends: tuple[ControlLine, ControlLine]) -> None:
    host, zygote = ends
    reading, writing = os.pipe()
    zygote.send(Forked(1, 100))
    zygote.send(Forked(2, 200), [writing])
    zygote.send(Forked(3, 300))
    os.close(writing)
    assert host.receive() == (Forked(1, 100), [])
    message, (received,) = host.receive()
    assert message == Forked(2, 200)
    assert host.receive() == (Forked(3, 300), [])
    assert not os.get_inheritable(received)
    os.write(received, b"through")
    assert os.read(reading, 100) == b"through"
    close_all([reading, received])


def test_the_host_does_not_wait(ends: tuple[ControlLine, ControlLine]) -> None:
    with pytest.raises(BlockingIOError):
        ends[0].receive()


def test_hanging_up_ends_the_line_in_one_direction(ends: tuple[ControlLine, ControlLine]) -> None:
    host, zygote = ends
    host.send(Fork(1))
    host.hang_up()
    assert zygote.receive() == (Fork(1), [])
    assert zygote.receive() == (None, [])
    zygote.send(Forked(1, 100))
    assert host.receive() == (Forked(1, 100), [])


def test_a_reader_that_never_reads_is_noticed(ends: tuple[ControlLine, ControlLine]) -> None:
    host, _ = ends
    with pytest.raises(BlockingIOError):
        exhaust(host)


def test_descriptors_of_garbage_are_closed() -> None:
    theirs, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = os.pipe()
    with theirs, closing(ControlLine(end)) as line:
        socket.send_fds(theirs, [b"garbage"], [writing])
        os.close(writing)
        with pytest.raises(ProtocolError):
            line.receive()
    assert os.read(reading, 1) == b""  # nobody holds the other end any more
    os.close(reading)


def test_a_message_whose_descriptors_do_not_fit_is_refused(ends: tuple[ControlLine, ControlLine]) -> None:
    host, zygote = ends
    zygote.send(Forked(1, 100), [0] * 20)
    with pytest.raises(ProtocolError):
        host.receive()


def exhaust(line: ControlLine) -> None:
    for number in range(100_000):
        line.send(Kill(number))
