"""Where the sender goes and where it does not: the veto, and the names before it."""

from __future__ import annotations

import asyncio
import socket
import threading
from ipaddress import ip_network
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pycurl
import pytest

from tempa.adapters.senders.curl.exchange import Exchange, Rules
from tempa.adapters.senders.curl.names import Place
from tempa.adapters.senders.curl.transfer import Transfer
from tempa.testing.receiver import Receiver
from tempa.webhooks.ports import Outbound

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.adapters.senders.curl import CurlSender

Send = Any  # a protocol of conftest.py, which cannot be imported

LOOPBACK_4 = (ip_network("127.0.0.0/8"),)


class Names:
    """A resolver that knows these names and counts how often it is asked."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names
        self.asked: list[str] = []

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        first, _, _ = host.partition(".")
        if first not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self.names[first]


def was_connected(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "localhost", "LOCALHOST", "127.0.0.1.",
     "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0", "0x0"],
)  # fmt: skip
async def test_loopback_is_never_connected_to_unless_it_is_allowed(
    send: Send, make_sender: Callable[..., CurlSender], host: str
) -> None:
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        strict = make_sender(allow_networks=())
        answer = await send(f"http://{host}:{listener.getsockname()[1]}/hook", strict)
        assert (answer.status, answer.error, answer.peer) == (None, "blocked_address", None)
        assert not was_connected(listener)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "localhost"]
)
async def test_an_allowed_network_is_open_in_every_spelling(
    send: Send, receiver: Receiver, host: str
) -> None:
    assert (await send(receiver.url("/ok", host))).status == 200


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "fe80::1"]]
)
async def test_one_refused_address_condemns_the_name(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver, addresses: list[str]
) -> None:
    picky = make_sender(resolve=Names(hook=addresses))
    assert (await send(receiver.url("/ok", "hook.example"), picky)).error == "blocked_address"
    assert receiver.requests == []


async def test_localhost_works_where_only_one_loopback_is_open(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    half = make_sender(allow_networks=LOOPBACK_4, resolve=Names(localhost=["::1", "127.0.0.1"]))
    assert (await send(receiver.url("/ok", "localhost"), half)).status == 200


async def test_the_veto_at_the_socket_does_not_trust_what_was_looked_up(
    send: Send, make_sender: Callable[..., CurlSender], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        strict = make_sender(allow_networks=())
        monkeypatch.setattr(strict._names, "known", lambda _: Place(False, ("127.0.0.1",)))
        answer = await send(f"http://hook.example:{listener.getsockname()[1]}/", strict)
        assert (answer.error, answer.peer) == ("blocked_address", None)
        assert not was_connected(listener)


async def test_a_refused_address_beside_an_allowed_one_stops_the_request_at_the_socket_too(
    send: Send, make_sender: Callable[..., CurlSender], monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    half = make_sender(allow_networks=LOOPBACK_4)
    monkeypatch.setattr(half._names, "known", lambda _: Place(False, ("::1", "127.0.0.1")))
    assert (await send(receiver.url("/ok", "hook.example"), half)).error == "blocked_address"
    assert receiver.requests == []


def test_once_an_address_was_refused_nothing_more_is_connected_to_and_nothing_sent() -> None:
    """An attempt at another address of the same name may be under way already."""
    rules = Rules(LOOPBACK_4, 1.0, "Tempa", 1.0, None)
    transfer = Transfer(rules, lambda _: None)
    future: asyncio.Future[Any] = asyncio.Future(loop=asyncio.new_event_loop())
    transfer.load(Exchange(Outbound("http://hook.example/", (), b"", 1.0), future, 0.0, None))
    assert transfer._before_request() == pycurl.PREREQFUNC_OK
    for host in ("10.0.0.1", "127.0.0.1"):
        address = SimpleNamespace(
            addr=(host, 80), family=socket.AF_INET, socktype=socket.SOCK_STREAM, protocol=0
        )
        assert transfer._open_socket(pycurl.SOCKTYPE_IPCXN, address) == pycurl.SOCKET_BAD
    assert transfer._before_request() == pycurl.PREREQFUNC_ABORT
    transfer.close()
    future.get_loop().close()


async def test_whoever_stops_waiting_for_a_name_takes_it_from_nobody(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def resolve(_: str) -> list[str]:
        asked.set()
        let_go.wait(20)
        return ["127.0.0.1"]

    sender = make_sender(resolve=resolve, connect_timeout_seconds=10.0)
    first, second = (
        asyncio.ensure_future(send(receiver.url("/ok", "hook.example"), sender)) for _ in range(2)
    )
    await asyncio.to_thread(asked.wait, 10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    let_go.set()
    assert (await second).status == 200


async def test_the_name_is_looked_up_once_and_the_host_header_keeps_it(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    resolve = Names(hook=["127.0.0.1"])
    sender = make_sender(resolve=resolve)
    url = receiver.url("/ok", "hook.example")
    answers = await asyncio.gather(*(send(url, sender) for _ in range(20)))
    answers.append(await send(url, sender))
    assert [answer.status for answer in answers] == [200] * 21
    assert resolve.asked == ["hook.example"]
    assert {request.headers["host"] for request in receiver.requests} == {f"hook.example:{receiver.port}"}


@pytest.mark.parametrize("host", ["HOOK.Example", "hook.example.", "hook"])
async def test_a_name_is_pinned_in_any_spelling(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver, host: str
) -> None:
    sender = make_sender(resolve=Names(hook=["127.0.0.1"]))
    assert (await send(receiver.url("/ok", host), sender)).status == 200


async def test_the_next_address_is_tried_when_one_does_not_answer(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    sender = make_sender(resolve=Names(hook=["::1", "127.0.0.1"]))
    answer = await send(receiver.url("/ok", "hook.example"), sender)
    assert (answer.status, answer.peer) == (200, "127.0.0.1")


async def test_ipv6_works(send: Send, make_sender: Callable[..., CurlSender]) -> None:
    with Receiver(host="::1") as receiver:
        sender = make_sender(resolve=Names(hook=["::1"]))
        for host in (None, "hook.example"):
            answer = await send(receiver.url("/ok", host), sender)
            assert (answer.status, answer.peer) == (200, "::1")


async def test_no_such_name_is_told_and_asked_again_next_time(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    resolve = Names()
    sender = make_sender(resolve=resolve)
    assert (await send(receiver.url("/ok", "hook.example"), sender)).error == "dns"
    resolve.names["hook"] = []
    assert (await send(receiver.url("/ok", "hook.example"), sender)).error == "dns"
    resolve.names["hook"] = ["127.0.0.1"]
    assert (await send(receiver.url("/ok", "hook.example"), sender)).status == 200


async def test_names_that_hang_hold_up_nobody_but_themselves(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    let_go = threading.Event()

    def resolve(host: str) -> list[str]:
        if host.startswith("mute"):
            let_go.wait(20)
        return ["127.0.0.1"]

    sender = make_sender(resolve=resolve, connect_timeout_seconds=0.5)
    mute = [asyncio.ensure_future(send(receiver.url("/ok", f"mute{n}.example"), sender)) for n in range(60)]
    answer = await send(receiver.url("/ok", "healthy.example"), sender)
    assert (answer.status, answer.timings["total"] < 0.4) == (200, True)
    assert {told.error for told in await asyncio.gather(*mute)} == {"dns"}
    let_go.set()


async def test_the_lookup_counts_against_the_deadline(
    send: Send, make_sender: Callable[..., CurlSender], receiver: Receiver
) -> None:
    def resolve(_: str) -> list[str]:
        threading.Event().wait(0.3)
        return ["127.0.0.1"]

    sender = make_sender(resolve=resolve)
    answer = await send(receiver.url("/half-open", "slow.example"), sender, timeout_seconds=0.6)
    assert answer.error == "timeout"
    assert answer.timings["name_lookup"] >= 0.3
    assert 0.55 < answer.timings["total"] < 0.85


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1/", "file:///etc/passwd", "//127.0.0.1/", "http:///x", "http://", "http:x//y",
     "http://exa mple/", "http://[::1/", "http://h:99999/", "http://h:x/", "http://\u00e9/", "http://a\0b/",
     "http://a\r\nb/", "gopher://127.0.0.1/"],
)  # fmt: skip
async def test_what_is_no_http_url_is_not_sent(send: Send, url: str) -> None:
    assert (await send(url)).error == "invalid_url"


async def test_no_proxy_is_taken_from_the_environment(
    send: Send, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await send("/ok")).status == 200


async def test_credentials_of_a_netrc_file_stay_home(
    send: Send, monkeypatch: pytest.MonkeyPatch, receiver: Receiver, tmp_path: Any
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login someone password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    await send("/ok")
    assert "authorization" not in receiver.requests[0].headers
