"""What a receiver can answer, and what becomes of it."""

from __future__ import annotations

import gzip
import zlib
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tempa.adapters.senders.curl.response import HEAD_BYTES_MAX, Response

if TYPE_CHECKING:
    from tempa.testing.receiver import Receiver

Send = Any  # a protocol of conftest.py, which cannot be imported

BODY_BYTES = 16_384


async def test_the_request_goes_out_as_it_was_given(send: Send, receiver: Receiver) -> None:
    body = bytes(range(256)) * 5000  # beyond the size at which libcurl would ask for "100 Continue"
    headers = (
        ("Content-Type", "application/json"),
        ("webhook-id", "evt_1"),
        ("X-Latin", "\u00f8"),
        ("X-Empty", ""),
    )
    await send("/hook/../a/b;c?d=%20&e", headers=headers, body=body)
    (request,) = receiver.wait_for(1)
    assert (request.method, request.path) == ("POST", "/hook/../a/b;c?d=%20&e")
    assert request.body == body
    assert {name: request.headers.get(name.lower()) for name, _ in headers} == dict(headers)
    assert request.headers["user-agent"] == "Tempa"
    assert not {"expect", "accept-encoding", "cookie", "authorization"} & set(request.headers)


async def test_without_a_content_type_none_is_made_up(send: Send, receiver: Receiver) -> None:
    await send("/hook", headers=())
    assert "content-type" not in receiver.requests[0].headers


async def test_handles_are_used_again_and_nothing_stays_of_the_request_before(
    send: Send, receiver: Receiver
) -> None:
    await send("/a", method="PUT", headers=(("X-One", "1"),), body=b"one")
    await send("/b", method="HEAD", headers=())
    await send("/c", method="GET", headers=())
    await send("/d", headers=(), body=b"")
    seen = [
        (r.method, r.path, r.body, r.headers.get("x-one"), r.headers.get("content-length"))
        for r in receiver.requests
    ]
    assert seen == [
        ("PUT", "/a", b"one", "1", "3"),
        ("HEAD", "/b", b"", None, None),
        ("GET", "/c", b"", None, None),
        ("POST", "/d", b"", None, "0"),
    ]


@pytest.mark.parametrize(
    "header", [("X", "a\r\nX-Injected: b"), ("X", "a\nb"), ("X: Y", "b"), ("", "b"), ("X", "\0")]
)
async def test_a_header_that_would_be_two_is_a_programmers_error(
    send: Send, receiver: Receiver, header: tuple[str, str]
) -> None:
    with pytest.raises(ValueError, match="not a header"):
        await send("/hook", headers=(header,))
    assert receiver.requests == []


@pytest.mark.parametrize(
    "status", [200, 201, 202, 204, 299, 304, 400, 401, 404, 408, 410, 429, 451, 500, 501, 502, 503, 504, 599]
)
async def test_every_status_comes_back(send: Send, status: int) -> None:
    answer = await send(f"/status/{status}")
    assert (answer.status, answer.error) == (status, None)
    assert answer.body == (b"" if status in (204, 304) else b"ok")
    assert answer.peer == "127.0.0.1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_is_not_followed(
    send: Send, receiver: Receiver, status: int
) -> None:
    answer = await send(f"/redirect/{status}")
    assert (answer.status, answer.headers["location"]) == (status, "/landed")
    assert [request.path for request in receiver.requests] == [f"/redirect/{status}"]


async def test_headers_come_back_by_lower_case_name(send: Send) -> None:
    answer = await send("/retry-after/503/" + quote("Wed, 21 Oct 2026 07:28:00 GMT", safe=""))
    assert answer.headers["retry-after"] == "Wed, 21 Oct 2026 07:28:00 GMT"


async def test_phases_are_timed_in_order(send: Send) -> None:
    first, second = await send("/ok"), await send("/ok")
    assert list(first.timings) == ["name_lookup", "connect", "first_byte", "total"]
    assert list(first.timings.values()) == sorted(first.timings.values())
    assert "connect" not in second.timings  # the connection was kept


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/truncated-body", b"0123456789"),
        ("/bad-chunks", b"ok"),
        ("/trailers", b"ok"),
        ("/surplus", b"ok"),
        ("/continue", b"ok"),
        ("/huge-body", b"x" * BODY_BYTES),
    ],
)
async def test_success_is_decided_at_the_head_whatever_the_body_does(
    send: Send, path: str, body: bytes
) -> None:
    started = monotonic()
    answer = await send(path)
    assert (answer.status, answer.error, answer.body) == (200, None, body)
    assert monotonic() - started < 2


async def test_a_dripping_body_may_take_a_little_longer_and_no_more(send: Send) -> None:
    answer = await send("/drip-body")
    assert (answer.status, answer.error) == (200, None)
    assert 0.25 < answer.timings["total"] < 1.5  # the sender's body_seconds is 0.3
    assert set(answer.body) == {ord("x")}


async def test_the_deadline_holds_while_the_body_comes(send: Send, make_sender: Any) -> None:
    patient = make_sender(body_seconds=60.0)
    answer = await send("/drip-body", patient, timeout_seconds=0.4)
    assert answer.status == 200
    assert 0.35 < answer.timings["total"] < 1.5


async def test_more_of_the_body_is_kept_when_more_is_asked_for(send: Send) -> None:
    answer = await send("/huge-body", response_bytes_max=3_000_000)
    assert len(answer.body) == 3_000_000


async def test_a_compressed_body_is_kept_as_it_came(send: Send) -> None:
    answer = await send("/gzip-bomb")
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) == BODY_BYTES
    assert zlib.decompressobj(wbits=31).decompress(answer.body, 4096) == bytes(4096)
    assert gzip.compress(bytes(1000))[:2] == answer.body[:2]


async def test_interim_answers_are_passed_over(send: Send) -> None:
    answer = await send("/continue")
    assert (answer.status, dict(answer.headers)) == (200, {"content-length": "2"})


@pytest.mark.parametrize("path", ["/half-open", "/drip-headers", "/endless-1xx/0.05"])
async def test_the_deadline_bounds_the_whole_exchange(send: Send, path: str) -> None:
    answer = await send(path, timeout_seconds=0.5)
    assert (answer.status, answer.error) == (None, "timeout")
    assert 0.45 < answer.timings["total"] < 1.5


async def test_on_a_kept_connection_a_silent_receiver_is_a_timeout_too(send: Send) -> None:
    await send("/ok")
    assert (await send("/half-open", timeout_seconds=0.3)).error == "timeout"


@pytest.mark.parametrize("path", ["/many-headers", "/long-header", "/endless-1xx"])
async def test_a_head_beyond_64_kib_is_cut(send: Send, path: str) -> None:
    answer = await send(path)
    assert (answer.status, answer.error) == (None, "headers_too_large")
    assert answer.timings["total"] < 2


@pytest.mark.parametrize(
    "line",
    ["HTTP/1.1 600 Odd", "HTTP/1.1 999 Odd", "HTTP/1.1 000 Odd", "HTTP/1.1 099 Odd", "HTTP/1.1 2000 Odd",
     "HTTP/1.1 20", "HTTP/1.1 abc", "HTTP/9.9 200 OK", "HTTP/2 200 OK", "SSH-2.0-OpenSSH_9.9", "{}"],
)  # fmt: skip
async def test_a_malformed_status_line_is_a_protocol_error(send: Send, line: str) -> None:
    answer = await send("/status-line/" + quote(line, safe=""))
    assert (answer.status, answer.error) == (None, "protocol_error")


@pytest.mark.parametrize("path", ["/http-0.9", "/switch"])
async def test_what_is_not_http_1_is_a_protocol_error(send: Send, path: str) -> None:
    assert (await send(path)).error == "protocol_error"


async def test_a_reset_before_any_answer_is_told(send: Send, receiver: Receiver) -> None:
    assert (await send("/reset")).error == "reset"
    assert len(receiver.requests) == 1  # a new connection: no second try within this one


def test_a_head_of_exactly_64_kib_passes_and_one_byte_more_does_not() -> None:
    for surplus in (0, 1):
        response, line = Response(10), b"HTTP/1.1 200 OK\r\n"
        filler = b"X: " + b"x" * (HEAD_BYTES_MAX - len(line) - 7 + surplus) + b"\r\n"
        assert response.take_header(line)
        assert response.take_header(filler)
        assert response.take_header(b"\r\n") is (surplus == 0)
        assert response.status == (200 if surplus == 0 else None)


def test_a_repeated_header_is_joined_and_trailers_are_not_headers() -> None:
    response = Response(10)
    for line in (
        b"HTTP/1.1 204\r\n",
        b"Set-Cookie: a=1\r\n",
        b"set-cookie:b=2 \r\n",
        b"no colon\r\n",
        b"\r\n",
        b"X: y\r\n",
    ):
        assert response.take_header(line)
    assert response.headers() == {"set-cookie": "a=1, b=2", "no colon": ""}


def test_the_body_is_cut_at_its_limit() -> None:
    response = Response(5)
    assert response.take_body(b"123")
    assert response.take_body(b"45")
    assert not response.take_body(b"6")
    assert response.body == b"12345"
