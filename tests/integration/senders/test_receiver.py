"""The test receiver itself: what it records, how it waits, how it follows a script."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from tempa.webhooks.ports import Answer

Send = Any  # a protocol of conftest.py, which cannot be imported


async def test_it_records_what_came_in_order(send: Send, receiver: Receiver) -> None:
    before = time.monotonic()
    await send("/one?x=1", headers=(("X-Name", "value"),), body=b"\x00first")
    await send("/two", body=b"second")
    first, second = receiver.requests
    assert (first.method, first.path, first.headers["x-name"], first.body) == (
        "POST",
        "/one?x=1",
        "value",
        b"\x00first",
    )
    assert (second.path, second.body) == ("/two", b"second")
    assert before <= first.at_seconds <= second.at_seconds <= time.monotonic()


async def test_it_follows_a_script_and_stays_with_its_last_line(send: Send, receiver: Receiver) -> None:
    receiver.script("/hook", "/status/503", "/redirect/302", "/ok/201")
    answers: list[Answer] = [await send("/hook") for _ in range(4)]
    assert [answer.status for answer in answers] == [503, 302, 201, 201]
    assert (await send("/elsewhere")).status == 200


async def test_it_waits_until_enough_has_come(send: Send, receiver: Receiver) -> None:
    waiting = asyncio.ensure_future(asyncio.to_thread(receiver.wait_for, 2, 10.0, "/hook"))
    for path in ("/hook", "/other", "/hook"):
        await send(path)
    assert [request.path for request in await waiting] == ["/hook", "/hook"]


async def test_waiting_in_vain_says_how_many_came(send: Send, receiver: Receiver) -> None:
    await send("/hook")
    with pytest.raises(TimeoutError, match="1 of 2 requests"):
        receiver.wait_for(2, timeout_seconds=0.01)


def test_closing_ends_what_is_under_way_and_frees_the_port() -> None:
    with Receiver() as receiver, socket.create_connection(("127.0.0.1", receiver.port)) as connection:
        connection.sendall(b"POST /half-open HTTP/1.1\r\n\r\n")
        receiver.wait_for(1)
        receiver.close()
        connection.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    with Receiver(port=receiver.port) as again:
        assert again.port == receiver.port
