"""What a server can do to whoever fetches from it, and what becomes of it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import ipaddress
import resource
import socket
import time
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from cryptography import x509

from tempa.adapters.senders.curl.fetch import REDIRECTS_MAX, CurlFetch
from tempa.adapters.senders.curl.names import Place
from tempa.core.errors import TempaError
from tests.integration.senders.canned import Canned, answer
from tests.integration.senders.certificates import certificate, secure
from tests.integration.senders.name_server import NameServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tempa.jobs.ports import Fetched
    from tempa.testing.receiver import Receiver

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
ONE_ADDRESS = (ipaddress.ip_network("127.0.0.1/32"),)
BODY = bytes(range(256)) * 4000
IMAGES = ("image/png", "image/jpeg")


class Get(Protocol):
    async def __call__(self, url: str, by: CurlFetch | None = None, **how: Any) -> Fetched | None: ...


@pytest.fixture
def canned() -> Iterator[Canned]:
    with Canned() as running:
        yield running


@pytest.fixture
async def make_fetch() -> AsyncIterator[Callable[..., CurlFetch]]:
    made: list[CurlFetch] = []

    def make(**settings: Any) -> CurlFetch:
        usual: dict[str, Any] = {"allow_networks": LOOPBACK, "connect_timeout_seconds": 1.0}
        made.append(CurlFetch(**(usual | settings)))
        return made[-1]

    yield make
    for fetch in made:
        await fetch.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "image"


@pytest.fixture
def get(make_fetch: Callable[..., CurlFetch], target: Path) -> Get:
    usual = make_fetch()

    async def get_one(url: str, by: CurlFetch | None = None, **how: Any) -> Fetched | None:
        asked: dict[str, Any] = {"size_bytes_max": 2_000_000, "timeout_seconds": 5.0, "media_types": IMAGES}
        return await (by or usual).fetch(url, target, **(asked | how))

    return get_one


async def failure(fetching: Any) -> TempaError:
    with pytest.raises(TempaError) as caught:
        await fetching
    assert caught.value.code == "SOURCE_FETCH_FAILED"
    return caught.value


def content(target: Path) -> bytes | None:
    """None: there is no file."""
    return target.read_bytes() if target.exists() else None


def png(body: bytes = BODY, *headers: str, status: int = 200) -> bytes:
    return answer(status, "Content-Type: image/png", *headers, body=body)


async def test_what_is_there_comes_whole(get: Get, canned: Canned, target: Path) -> None:
    fetched = await get(canned.url("/a", png(BODY, f"Content-Length: {len(BODY)}")))

    assert fetched is not None
    assert (fetched.size_bytes, fetched.media_type) == (len(BODY), "image/png")
    assert fetched.sha256 == hashlib.sha256(BODY).hexdigest()
    assert content(target) == BODY


async def test_it_asks_as_plainly_as_can_be(get: Get, canned: Canned) -> None:
    await get(canned.url("/a?b=%20c", png()) + "#fragment")

    line, *headers = canned.requests[0].strip().split("\r\n")
    assert line == "GET /a?b=%20c HTTP/1.1"
    asked = dict(header.split(": ") for header in headers)
    assert asked.pop("Host").startswith("127.0.0.1:")
    assert asked == {
        "User-Agent": "Tempa",
        "Accept": "image/png, image/jpeg",
        "Accept-Encoding": "identity",
    }


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_length_need_not_be_said(get: Get, canned: Canned, target: Path, chunked: bool) -> None:  # noqa: FBT001
    body = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" if chunked else b"abcde"
    headers = ("Transfer-Encoding: chunked",) if chunked else ()
    await get(canned.url("/a", png(body, *headers)))
    assert content(target) == b"abcde"


async def test_an_empty_body_is_a_file(get: Get, canned: Canned, target: Path) -> None:
    fetched = await get(canned.url("/a", png(b"", "Content-Length: 0")))
    assert fetched is not None
    assert (fetched.size_bytes, content(target)) == (0, b"")


@pytest.mark.parametrize("kind", ["image/png; q=1", "IMAGE/JPEG", "application/octet-stream", ""])
async def test_declared_as_wanted_or_not_at_all_it_is_taken(get: Get, canned: Canned, kind: str) -> None:
    headers = (f"Content-Type: {kind}",) if kind else ()
    assert await get(canned.url("/a", answer(200, *headers, body=b"x"))) is not None


async def test_a_family_of_types_may_be_wanted(get: Get, canned: Canned) -> None:
    assert await get(canned.url("/a", png()), media_types=("image/*",)) is not None


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml", "image/pngx", "\xe9" * 9])
async def test_declared_as_something_else_it_is_not_taken(
    get: Get, canned: Canned, target: Path, kind: str
) -> None:
    error = await failure(get(canned.url("/a", answer(200, f"Content-Type: {kind}", body=b"x"))))
    assert (error.detail["reason"], error.retryable) == ("media_type", False)
    assert content(target) is None


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, False) for status in (204, 206, 304, 403, 404, 410)),
        *((status, True) for status in (408, 425, 429, 500, 502, 503)),
    ],
)
async def test_another_status_is_told(get: Get, receiver: Receiver, status: int, retryable: bool) -> None:  # noqa: FBT001
    error = await failure(get(receiver.url(f"/status/{status}")))
    assert (error.detail["http_status"], error.retryable) == (status, retryable)


async def test_what_says_that_it_is_too_large_is_not_begun(get: Get, canned: Canned, target: Path) -> None:
    assert await get(canned.url("/a", png(b"", "Content-Length: 2000001"))) is None
    assert content(target) is None


async def test_what_turns_out_too_large_is_dropped(get: Get, canned: Canned, target: Path) -> None:
    assert await get(canned.url("/a", png(BODY)), size_bytes_max=len(BODY) - 1) is None
    assert content(target) is None


async def test_as_large_as_it_may_be_it_is_taken(get: Get, canned: Canned) -> None:
    assert await get(canned.url("/a", png(BODY)), size_bytes_max=len(BODY)) is not None


async def test_an_endless_body_costs_no_memory(get: Get, receiver: Receiver) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await get(receiver.url("/huge-body"), size_bytes_max=1 << 20, media_types=()) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB


async def test_a_body_without_end_is_cut_at_the_size(get: Get, canned: Canned, target: Path) -> None:
    chunks = b"fff0\r\n" + bytes(0xFFF0) + b"\r\n"
    data = png(chunks * 100, "Transfer-Encoding: chunked")
    assert await get(canned.url("/a", data), size_bytes_max=500_000) is None
    assert content(target) is None


@pytest.mark.parametrize("length", [len(BODY) + 1, 10 * len(BODY)])
async def test_less_than_was_promised_is_no_file(get: Get, canned: Canned, target: Path, length: int) -> None:
    data = png(BODY, f"Content-Length: {length}")
    error = await failure(get(canned.url("/a", data), size_bytes_max=1 << 30))
    assert (error.detail["reason"], error.retryable) == ("incomplete", True)
    assert content(target) is None


async def test_more_than_was_promised_is_left(get: Get, canned: Canned, target: Path) -> None:
    await get(canned.url("/a", png(BODY, "Content-Length: 100")))
    assert content(target) == BODY[:100]


@pytest.mark.parametrize("length", ["nonsense", "-1", "1e3"])
async def test_a_length_that_is_none_is_no_answer(get: Get, canned: Canned, length: str) -> None:
    error = await failure(get(canned.url("/a", png(b"abc", f"Content-Length: {length}"))))
    assert error.retryable


async def test_a_length_of_forty_digits_is_too_large(get: Get, canned: Canned) -> None:
    assert await get(canned.url("/a", png(b"abc", f"Content-Length: {'9' * 40}"))) is None


async def test_chunks_of_nonsense_are_no_file(get: Get, receiver: Receiver, target: Path) -> None:
    error = await failure(get(receiver.url("/bad-chunks"), media_types=()))
    assert (error.detail["reason"], error.retryable) == ("incomplete", True)
    assert content(target) is None


@pytest.mark.parametrize("path", ["/drip-body", "/half-open", "/drip-headers"])
async def test_the_deadline_bounds_a_drip(get: Get, receiver: Receiver, target: Path, path: str) -> None:
    began = time.monotonic()
    error = await failure(get(receiver.url(path), timeout_seconds=0.4, media_types=()))
    assert (error.detail["reason"], error.retryable) == ("timeout", True)
    assert time.monotonic() - began < 3
    assert content(target) is None


async def test_a_trickle_is_given_up_long_before_the_deadline(
    get: Get, make_fetch: Callable[..., CurlFetch], receiver: Receiver, target: Path
) -> None:
    """It would keep a slot of the worker that waits for it."""
    hasty = make_fetch(trickle_seconds=1)
    async with asyncio.timeout(20):
        error = await failure(get(receiver.url("/drip-body"), hasty, timeout_seconds=60.0, media_types=()))
    assert (error.detail["reason"], error.retryable) == ("incomplete", True)
    assert content(target) is None


async def test_redirects_share_one_deadline(get: Get, receiver: Receiver) -> None:
    receiver.script("/landed", "/half-open")
    began = time.monotonic()
    error = await failure(get(receiver.url("/redirect/302"), timeout_seconds=0.4))
    assert error.detail["reason"] == "timeout"
    assert time.monotonic() - began < 3


async def test_what_is_packed_unasked_is_not_unpacked(get: Get, canned: Canned, target: Path) -> None:
    bomb = gzip.compress(bytes(10_000_000))
    error = await failure(get(canned.url("/a", png(bomb, "Content-Encoding: gzip"))))
    assert (error.detail["reason"], error.retryable) == ("compressed", False)
    assert content(target) is None


async def test_a_closed_port_is_worth_another_try(get: Get) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = await failure(get(f"http://127.0.0.1:{port}/"))
    assert (error.detail["reason"], error.retryable) == ("connect_refused", True)


async def test_a_reset_is_worth_another_try(get: Get, receiver: Receiver) -> None:
    error = await failure(get(receiver.url("/reset")))
    assert (error.detail["reason"], error.retryable) == ("reset", True)


async def test_an_unknown_name_is_worth_another_try(get: Get, make_fetch: Any) -> None:
    def unknown(_: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    error = await failure(get("https://nowhere.example/", make_fetch(resolve=unknown)))
    assert (error.detail["reason"], error.retryable) == ("dns", True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed(get: Get, canned: Canned, target: Path, status: int) -> None:
    canned.url("/b", png(b"there"))
    await get(canned.url("/a", answer(status, "Location: /b", "Content-Type: text/html", body=b"moved")))
    assert content(target) == b"there"
    assert [request.split()[0] for request in canned.requests] == ["GET", "GET"]


async def test_redirects_end(get: Get, canned: Canned) -> None:
    error = await failure(get(canned.url("/a", answer(302, "Location: /a"))))
    assert (error.detail, error.retryable) == ({"reason": "redirects", "limit": REDIRECTS_MAX}, False)
    assert len(canned.requests) == REDIRECTS_MAX + 1


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.66:9/",
        "//10.0.0.1/a",
        "http://0x7f000042/",
        "http://[::ffff:169.254.169.254]/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "http://user@127.0.0.1/",
        "http://[",
    ],
)
async def test_a_redirect_leads_nowhere_that_a_request_may_not(
    get: Get, canned: Canned, make_fetch: Any, location: str
) -> None:
    strict = make_fetch(allow_networks=ONE_ADDRESS)
    error = await failure(get(canned.url("/a", answer(301, f"Location: {location}")), strict))
    assert error.detail["reason"] in {"blocked_address", "redirects"}
    assert not error.retryable
    assert len(canned.requests) == 1


async def test_a_redirect_without_a_place_is_a_status(get: Get, canned: Canned) -> None:
    error = await failure(get(canned.url("/a", answer(302))))
    assert (error.detail["http_status"], error.retryable) == (302, False)


async def test_a_redirect_from_https_to_http_is_refused(make_fetch: Any, get: Get, tmp_path: Path) -> None:
    pem = certificate(tmp_path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    tls = secure(pem)._tls
    with Canned() as plain, Canned(tls=tls) as safe:
        away = answer(302, f"Location: {plain.url('/b', png())}")
        error = await failure(get(safe.url("/a", away), make_fetch(ca_file=str(pem))))
    assert (error.detail["reason"], plain.requests) == ("redirects", [])


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "https://10.0.0.1/a.png",
        "http://[::1]:9/",
        "https://localhost/",
        "ftp://example.com/a",
        "file:///etc/passwd",
        "http://example.com/a.png",
        "nonsense",
    ],
)
async def test_an_address_that_may_not_be_called_is_refused(get: Get, make_fetch: Any, url: str) -> None:
    def never(_: str) -> list[str]:
        pytest.fail("looked up")

    error = await failure(get(url, make_fetch(allow_networks=(), resolve=never)))
    assert (error.detail["reason"], error.retryable) == ("blocked_address", False)


async def test_plain_http_is_for_those_who_allow_it(get: Get, canned: Canned, make_fetch: Any) -> None:
    url = canned.url("/a", png(), "pictures.example")
    resolved = {"resolve": lambda _: ["127.0.0.1"]}
    assert (await failure(get(url, make_fetch(**resolved)))).detail["reason"] == "blocked_address"
    assert await get(url, make_fetch(allow_http=True, **resolved)) is not None


async def test_a_name_that_turns_inside_between_two_hops_is_not_called(
    get: Get, canned: Canned, make_fetch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempa.adapters.senders.curl.names._KNOWN_SECONDS", 0.0)
    with NameServer() as names:
        names.script("turning.example", ["127.0.0.1"], ["127.0.0.66"])
        strict = make_fetch(allow_networks=ONE_ADDRESS, allow_http=True, resolve=names.addresses)
        url = canned.url("/a", answer(302, "Location: /a"), "turning.example")
        error = await failure(get(url, strict))
    assert (error.detail["reason"], len(canned.requests)) == ("blocked_address", 1)


async def test_where_the_check_was_deceived_the_socket_is_not_opened(
    get: Get, make_fetch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Canned(host="127.0.0.66") as inner:
        strict = make_fetch(allow_networks=ONE_ADDRESS, allow_http=True)
        monkeypatch.setattr(strict._sender._names, "known", lambda _: Place(False, ("127.0.0.66",)))
        error = await failure(get(inner.url("/a", png(), "deceived.example"), strict))
    assert (error.detail["reason"], inner.requests) == ("blocked_address", [])


async def test_a_file_that_cannot_be_written_is_the_disks_fault(
    make_fetch: Any, canned: Canned, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"size_bytes_max": 1 << 22, "timeout_seconds": 5.0, "media_types": IMAGES}
    with pytest.raises(IsADirectoryError):
        await make_fetch().fetch(canned.url("/a", png()), tmp_path, **how)


async def test_a_full_disk_is_the_disks_fault(canned: Canned, make_fetch: Any, full_device: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        await make_fetch().fetch(
            canned.url("/a", png()),
            full_device,
            size_bytes_max=1 << 22,
            timeout_seconds=5.0,
            media_types=IMAGES,
        )


@pytest.fixture
def full_device(tmp_path: Path) -> Path:
    """A name for the kernel's own full disk: removing the name leaves the device."""
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    return link


async def test_giving_up_leaves_no_file(get: Get, receiver: Receiver, target: Path) -> None:
    task = asyncio.ensure_future(get(receiver.url("/drip-body"), media_types=(), timeout_seconds=60.0))
    await asyncio.to_thread(receiver.wait_for, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert content(target) is None


async def test_several_at_once_do_not_mix(make_fetch: Any, canned: Canned, tmp_path: Path) -> None:
    fetch = make_fetch()
    bodies = [bytes([number]) * 300_000 for number in range(12)]
    urls = [canned.url(f"/{number}", png(body)) for number, body in enumerate(bodies)]
    how: dict[str, Any] = {"size_bytes_max": 1 << 20, "timeout_seconds": 20.0, "media_types": IMAGES}
    await asyncio.gather(
        *(fetch.fetch(url, tmp_path / str(number), **how) for number, url in enumerate(urls))
    )
    assert [(tmp_path / str(number)).read_bytes() for number in range(12)] == bodies
