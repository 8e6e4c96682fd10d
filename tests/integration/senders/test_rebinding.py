"""A name server that says one thing when the address is checked and another when it is called."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.senders.curl.names import Place
from tempa.testing.receiver import Receiver
from tests.integration.senders.name_server import NameServer
from tests.unit.webhooks.test_addresses import DANGEROUS, SPELLINGS_OF_LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tempa.adapters.senders.curl import CurlSender

Send = Any  # a protocol of conftest.py, which cannot be imported

GOOD, INNER = "127.0.0.1", "127.0.0.66"
ONLY_GOOD = (ip_network(f"{GOOD}/32"),)
NAME = "rebinding.example"


@pytest.fixture
def name_server() -> Iterator[NameServer]:
    with NameServer() as running:
        yield running


@pytest.fixture
def receivers() -> Iterator[tuple[Receiver, Receiver]]:
    """One that may be called, and one inside the house at the same port."""
    with ExitStack() as stack:
        good = stack.enter_context(Receiver(host=GOOD))
        yield good, stack.enter_context(Receiver(host=INNER, port=good.port))


def test_the_name_server_says_what_it_is_told(name_server: NameServer) -> None:
    name_server.script("two.example", ["10.0.0.1", "::1"], ["10.0.0.2"])
    assert [name_server.addresses("two.example") for _ in range(3)] == [
        ["::1", "10.0.0.1"],
        ["10.0.0.2"],
        ["10.0.0.2"],
    ]
    with pytest.raises(socket.gaierror):
        name_server.addresses("nowhere.example")


async def test_what_was_judged_is_what_is_called_whatever_the_next_answer_is(
    send: Send,
    make_sender: Callable[..., CurlSender],
    name_server: NameServer,
    receivers: tuple[Receiver, Receiver],
) -> None:
    """The name server turns at the second question: nobody asks it between check and connection."""
    good, inner = receivers
    name_server.script(NAME, [GOOD], [INNER])
    sender = make_sender(allow_networks=ONLY_GOOD, resolve=name_server.addresses)
    answers = [await send(good.url("/close", NAME), sender) for _ in range(5)]

    assert [(answer.status, answer.peer) for answer in answers] == [(200, GOOD)] * 5
    assert (name_server.asked[NAME], len(good.requests), inner.requests) == (1, 5, [])


async def test_each_answer_is_judged_anew_when_it_is_no_longer_remembered(
    send: Send,
    make_sender: Callable[..., CurlSender],
    name_server: NameServer,
    receivers: tuple[Receiver, Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempa.adapters.senders.curl.names._KNOWN_SECONDS", 0.0)
    good, inner = receivers
    name_server.script(NAME, [GOOD], [INNER], [GOOD], [GOOD, INNER], [f"::ffff:{INNER}"], [GOOD])
    sender = make_sender(allow_networks=ONLY_GOOD, resolve=name_server.addresses)
    answers = [await send(good.url("/close", NAME), sender) for _ in range(6)]

    blocked = (None, "blocked_address")
    assert [(answer.status, answer.error) for answer in answers] == [
        *((200, None), blocked, (200, None)),
        *(blocked, blocked, (200, None)),
    ]
    assert (name_server.asked[NAME], len(good.requests), inner.requests) == (6, 3, [])


async def test_where_the_check_was_deceived_the_veto_at_the_socket_holds(
    send: Send,
    make_sender: Callable[..., CurlSender],
    name_server: NameServer,
    receivers: tuple[Receiver, Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if libcurl itself looked the name up again: it gets the second answer, the check had the first."""
    good, inner = receivers
    name_server.script(NAME, [GOOD], [INNER])
    sender = make_sender(allow_networks=ONLY_GOOD, resolve=name_server.addresses)

    async def looked_up_twice(host: str, _: float) -> Place:
        assert name_server.addresses(host) == [GOOD]
        return Place(False, tuple(name_server.addresses(host)))

    monkeypatch.setattr(sender._names, "look_up", looked_up_twice)
    answer = await send(good.url("/ok", NAME), sender)

    assert (answer.status, answer.error, answer.peer) == (None, "blocked_address", None)
    assert good.requests == inner.requests == []


@pytest.mark.parametrize("address", [address for address in DANGEROUS if "%" not in address])
async def test_a_dangerous_address_is_called_in_none_of_three_ways(
    send: Send, make_sender: Callable[..., CurlSender], name_server: NameServer, address: str
) -> None:
    """As a literal, as what a name server says, and at the socket, by a check that was deceived."""
    name_server.script(NAME, [address])
    name_server.script("beside.example", ["8.8.8.8", address])
    strict = make_sender(allow_networks=(), resolve=name_server.addresses)
    literal = f"[{address}]" if ":" in address else address
    hosts = (literal, NAME, "beside.example")
    told = [(await send(f"http://{host}:9/", strict)).error for host in hosts]
    assert told == ["blocked_address"] * 3

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict._names, "known", lambda _: Place(False, (address,)))
        assert (await send("http://deceived.example:9/", strict)).error == "blocked_address"


@pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK)
async def test_no_spelling_of_loopback_gets_past(
    send: Send, make_sender: Callable[..., CurlSender], receivers: tuple[Receiver, Receiver], host: str
) -> None:
    good, _ = receivers
    answer = await send(f"http://{host}:{good.port}/", make_sender(allow_networks=()))
    # What is not ASCII is no URL: two programs might read it in two ways.
    assert answer.error == ("blocked_address" if host.isascii() else "invalid_url")
    assert good.requests == []
