"""The fault matrix: what each kind of receiver leads to, and what stands on record of it.

The real deliverer, transport and store, on either database. All rows are played at once, each at an
endpoint of its own; time stands still, so that an attempt is made once and its due times are exact.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import ACCOUNT
from tempa.webhooks import verify
from tempa.webhooks.model import DeadReason, DeliveryStatus, EndpointStatus
from tests.integration.deliveries.conftest import Post
from tests.integration.deliveries.places import Places
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tempa.testing.receiver import Received
    from tempa.webhooks.model import Attempt, Delivery, Endpoint

SECRET = "whsec_" + "c2VjcmV0" * 4
EXCERPT_BYTES_MAX = 16_384
JITTER_SECONDS = 1.0  # the dice below fall on one half, and the first ceiling is 2 s
TIMEOUT_SECONDS = 0.9
PLAYED_SECONDS = 60.0  # a busy machine; it takes 2


class Half:
    """Dice that always fall in the middle."""

    def random(self) -> float:
        return 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """What must come of an attempt. `excerpt`: None if it is not known to the byte."""

    outcome: str
    status: int | None = None
    error: str | None = None
    reason: DeadReason | None = None
    hold_seconds: float = 0.0
    excerpt: bytes | None = b""
    arrives: int = 1


def taken(status: int = 200, excerpt: bytes | None = b"ok") -> Row:
    return Row("delivered", status, excerpt=excerpt)


def tried_again(status: int, excerpt: bytes = b"ok", hold_seconds: float = 0.0) -> Row:
    return Row("retry", status, excerpt=excerpt, hold_seconds=hold_seconds)


def held(status: int, seconds: float) -> Row:
    return tried_again(status, b"", seconds)


def failed(error: str, arrives: int = 1) -> Row:
    return Row("retry", error=error, arrives=arrives)


def final(status: int) -> Row:
    return Row("dead", status, reason=DeadReason.REFUSED, excerpt=b"ok")


def never_sent(error: str) -> Row:
    return Row("dead", error=error, reason=DeadReason(error), arrives=0)


def _line(text: str) -> str:
    return "/status-line/" + quote(text, safe="")


def _after(status: int, value: str) -> str:
    return f"/retry-after/{status}/" + quote(value, safe="")


_SUCCESS = (200, 201, 202, 203, 206, 207, 226, 299)
_REFUSED = (400, 401, 402, 403, 404, 405, 406, 409, 410, 413, 415, 421, 422, 425, 428, 431, 451, 499)
_TRIED = (300, 305, 408, 500, 501, 502, 503, 504, 507, 520, 599)
_REDIRECTS = (301, 302, 303, 307, 308)
_DAY = 86_400
ROWS: dict[str, Row] = {
    **{f"/status/{status}": taken(status) for status in _SUCCESS},
    "/status/204": taken(204, b""),
    "/truncated-body": taken(excerpt=b"0123456789"),
    "/drip-body": taken(excerpt=None),
    "/huge-body": taken(excerpt=b"x" * EXCERPT_BYTES_MAX),
    "/gzip-bomb": taken(excerpt=None),
    "/binary-body": taken(excerpt=b"\x00\xff\xc3(\x00"),
    "/cookies": taken(),
    "/trailers": taken(),
    "/bad-chunks": taken(),
    "/surplus": taken(),
    "/continue": taken(),
    "/close": taken(),
    "/date/3600": taken(),
    "/date/-3600": taken(),
    _line("HTTP/1.0 200 OK"): taken(),
    **{f"/redirect/{status}": tried_again(status, b"") for status in _REDIRECTS},
    "/status/304": tried_again(304, b""),
    **{f"/status/{status}": tried_again(status) for status in _TRIED},
    **{f"/status/{status}": final(status) for status in _REFUSED},
    **{_after(status, "120"): held(status, 120) for status in (429, 503, 408, 500, 302)},
    _after(429, "Thu, 01 Jan 2026 00:02:00 GMT"): held(429, 120),
    _after(429, "Thursday, 01-Jan-26 00:02:00 GMT"): held(429, 120),
    _after(503, "Wed, 31 Dec 2025 23:00:00 GMT"): held(503, 0),
    _after(503, "Wed, 01 Jan 2031 00:00:00 GMT"): held(503, _DAY),
    _after(429, "99999999999999999999"): held(429, _DAY),
    **{_after(429, odd): held(429, 0) for odd in ("0", "-5", "1e9", "1.5", "soon", "120 s", "\xb2")},
    **{
        _line(f"HTTP/1.1 {code}"): failed("protocol_error")
        for code in ("600 Odd", "000 Odd", "20", "2000 Odd", "abc", "099 Odd")
    },
    _line("ICY 200 OK"): failed("protocol_error"),
    "/switch": failed("protocol_error"),
    "/http-0.9": failed("protocol_error"),
    "/endless-1xx": failed("headers_too_large"),
    "/many-headers": failed("headers_too_large"),
    "/long-header": failed("headers_too_large"),
    "/endless-1xx/0.05": failed("timeout"),
    "/drip-headers": failed("timeout"),
    "/half-open": failed("timeout"),
    "/reset": failed("reset"),
    "silent!/never-reads": failed("timeout", arrives=0),
    "deaf!/drops-what-knocks": failed("connect_timeout", arrives=0),
    "http://127.0.0.1:1/nobody-listens": failed("connect_refused", arrives=0),
    "http://255.255.255.255:9/no-way": failed("unreachable", arrives=0),
    "nowhere.example!/ok": failed("dns", arrives=0),
    "servfail.example!/ok": failed("dns", arrives=0),
    "mute.example!/ok": failed("dns", arrives=0),
    "empty.example!/ok": failed("dns", arrives=0),
    "v6.example!/ok": taken(),
    "broken-v6.example!/ok?v6": taken(),
    "private.example!/ok": never_sent("blocked_address"),
    "metadata.example!/ok": never_sent("blocked_address"),
    "mapped.example!/ok": never_sent("blocked_address"),
    "mixed.example!/ok": never_sent("blocked_address"),
    "mixed6.example!/ok": never_sent("blocked_address"),
    "http://169.254.169.254/latest/meta-data": never_sent("blocked_address"),
    "http://0x0a000001/": never_sent("blocked_address"),
    "http:///no-host": never_sent("invalid_url"),
    "good!/ok": taken(),
    "expired!/ok": failed("tls", arrives=0),
    "other!/ok": failed("tls", arrives=0),
    "unknown!/ok": failed("tls", arrives=0),
    "old!/ok": failed("tls", arrives=0),
    "https+silent!/handshake-stalls": failed("tls", arrives=0),
}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one row. `now` is the moment at which all of it happened."""

    delivery: Delivery
    attempts: list[Attempt]
    endpoint: Endpoint
    arrived: list[Received]
    now: ManualClock


Results = dict[str, Played]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All rows, played at once on one store."""
    folder, url = tmp_path_factory.mktemp("matrix"), None
    if request.param == "postgres":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Places(folder) as places, ThreadPoolExecutor(1) as elsewhere:  # this thread may have a loop
        return elsewhere.submit(lambda: asyncio.run(_play(folder, url, places))).result()


@asynccontextmanager
async def _post(folder: Path, url: str | None) -> AsyncIterator[Post]:
    clock = ManualClock()
    wake = InProcessWake(clock)
    store: Any
    if url is None:
        store = await SqliteStore.open(folder / "tempa.db", clock=clock, wake=wake)
    else:
        store = await PostgresStore.open(Address(url), wake=wake, clock=clock)
    yield Post(store, clock, wake)
    await store.close()


async def _play(folder: Path, url: str | None, places: Places) -> Results:
    sender, urls = places.sender(), {where: places.url(where) for where in ROWS}
    async with _post(folder, url) as post:
        await post.announce(*urls.values())
        fields = {"rng": Half(), "policy": RetryPolicy(), "timeout_seconds": TIMEOUT_SECONDS}
        async with post.delivering(sender, **fields):
            await post.until(lambda: _all_are_settled(post), PLAYED_SECONDS)
        await sender.close()
        by_url = {delivery.url: delivery for delivery in await post.deliveries()}
        return {where: await _result(post, by_url[at], places) for where, at in urls.items()}


async def _all_are_settled(post: Post) -> bool:
    made = await post.deliveries()
    return all(one.attempts and one.status is not DeliveryStatus.LEASED for one in made)


async def _result(post: Post, delivery: Delivery, places: Places) -> Played:
    found, attempts = await post.record(delivery.id)
    endpoint = await post.store.endpoint(ACCOUNT, found.endpoint_id)
    assert endpoint is not None
    assert isinstance(post.clock, ManualClock)
    return Played(found, attempts, endpoint, places.arrived(found.url), post.clock)


@pytest.mark.parametrize("where", ROWS)
def test_what_becomes_of_it(played: Results, where: str) -> None:
    row, of = ROWS[where], played[where]
    now = of.now.now()
    (attempt,) = of.attempts
    assert (attempt.outcome, attempt.http_status, attempt.error) == (row.outcome, row.status, row.error)
    if row.outcome == "retry":
        due = now + timedelta(seconds=row.hold_seconds + JITTER_SECONDS)
        assert (of.delivery.status, of.delivery.next_attempt_at) == (DeliveryStatus.PENDING, due)
    else:
        assert (of.delivery.status, of.delivery.finished_at) == (row.outcome, now)
    assert of.delivery.reason == row.reason
    until = now + timedelta(seconds=row.hold_seconds + JITTER_SECONDS) if row.hold_seconds else None
    assert of.endpoint.held_until == until


@pytest.mark.parametrize("where", ROWS)
def test_what_stands_on_record_is_what_went_out_and_came_back(played: Results, where: str) -> None:
    row, of = ROWS[where], played[where]
    (attempt,) = of.attempts
    assert len(of.arrived) == row.arrives
    for request in of.arrived:
        assert hashlib.sha256(request.body).hexdigest() == attempt.body_sha256
        now = of.now.now().timestamp()
        assert verify(request.body, request.headers, SECRET, now=now)["id"] == of.delivery.event_id
    assert isinstance(attempt.response_excerpt, bytes)
    assert len(attempt.response_excerpt) <= EXCERPT_BYTES_MAX
    if row.excerpt is not None:
        assert attempt.response_excerpt == row.excerpt


def test_a_compressed_answer_is_kept_as_it_came(played: Results) -> None:
    (attempt,) = played["/gzip-bomb"].attempts
    assert len(attempt.response_excerpt) == EXCERPT_BYTES_MAX
    assert zlib.decompressobj(wbits=31).decompress(attempt.response_excerpt, 4096) == bytes(4096)


def test_nobody_was_led_elsewhere(played: Results) -> None:
    """Every request that came was one of a row's own: no redirect was followed, and nothing came twice."""
    for where, of in played.items():
        assert [request.method for request in of.arrived] == ["POST"] * ROWS[where].arrives


def test_410_alone_disables_its_endpoint(played: Results) -> None:
    disabled = {where for where, of in played.items() if of.endpoint.status is EndpointStatus.DISABLED}
    assert disabled == {"/status/410"}


def test_one_failure_opens_no_breaker(played: Results) -> None:
    assert {where for where, of in played.items() if of.endpoint.parked_at} == {"/status/410"}


def test_phases_are_timed_as_far_as_they_came(played: Results) -> None:
    def phases(where: str) -> Mapping[str, float]:
        return played[where].attempts[0].timings

    assert list(phases("good!/ok")) == ["name_lookup", "connect", "tls", "first_byte", "total"]
    assert "first_byte" not in phases("/half-open")
    assert TIMEOUT_SECONDS - 0.05 < phases("/half-open")["total"] < 3 * TIMEOUT_SECONDS
    assert list(phases("mute.example!/ok")) == ["total"]


def test_429_that_does_not_say_how_long_holds_nobody_else(played: Results) -> None:
    """Three in a row park, and from then on a pace finds the rate (decision 0016)."""
    assert played[_after(429, "soon")].endpoint.held_until is None
