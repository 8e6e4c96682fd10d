"""The webhooks' bench: what it reckons from what came, and that its two ends understand each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import pytest

from bench.probes import Weather
from bench.webhooks.cost import BARE, COMPARISONS, OURS, OVER_AIOHTTP, RECIPE, Cost
from bench.webhooks.outages import return_of
from bench.webhooks.promptness import Promptness, waits_ms
from bench.webhooks.receiver import Book, Capacity, Connection

if TYPE_CHECKING:
    from pathlib import Path


def request(path: str, job_id: str = "cad_1", body_bytes: int = 0) -> bytes:
    """As a sender writes it."""
    body = json.dumps({"data": {"job_id": job_id, "x": "x" * body_bytes}}, separators=(",", ":")).encode()
    return f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Wire:
    """Keeps what a connection writes."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def connection(book: Book, wire: Wire) -> Connection:
    connection = Connection(book)
    connection.connection_made(wire)  # type: ignore[arg-type]
    return connection


def rows(figures: list[Any]) -> dict[str, list[float]]:
    return {row.what: list(row.counted) for row in figures}


def test_a_request_is_taken_when_it_is_whole_and_noted_when_it_began(
    connection: Connection, book: Book, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([5.0, 6.0])
    monkeypatch.setattr("bench.webhooks.receiver.time.monotonic", lambda: next(times))
    whole = request("/ok?7", "cad_7", body_bytes=3000)
    for piece in (whole[:10], whole[10:90], whole[90:-1]):
        connection.data_received(piece)
        assert (book.requests, wire.written) == (0, b"")
    connection.data_received(whole[-1:])
    assert (book.requests, book.first_bytes) == (1, {"cad_7": 5.0})
    assert wire.written.startswith(b"HTTP/1.1 200 ")
    connection.data_received(request("/ok?7", "cad_8"))
    assert book.first_bytes == {"cad_7": 5.0, "cad_8": 6.0}


def test_one_that_hangs_takes_the_request_and_says_nothing(
    connection: Connection, book: Book, wire: Wire
) -> None:
    connection.data_received(request("/hang"))
    assert (book.requests, book.first_bytes, wire.written) == (1, {}, b"")


def test_a_limited_one_is_down_until_it_is_told_what_it_can_take(
    connection: Connection, book: Book, wire: Wire
) -> None:
    connection.data_received(request("/limited"))
    assert wire.written.startswith(b"HTTP/1.1 503 ")
    book.obey("capacity 0.001\n")
    assert book.limited == []  # what came while it was down is not its return
    for _ in range(2):
        wire.written = b""
        connection.data_received(request("/limited"))
    assert wire.written.startswith(b"HTTP/1.1 429 ")
    assert [taken for _, taken in book.limited] == [True, False]


def test_a_report_tells_what_came_since_the_last(
    connection: Connection, book: Book, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.data_received(request("/ok", "cad_1"))
    book.obey("report\n")
    book.obey("report\n")
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["requests"], list(first["first_bytes"])) == (1, ["cad_1"])
    assert (second["requests"], second["first_bytes"]) == (0, {})


def test_a_capacity_takes_so_many_a_second_however_many_come() -> None:
    capacity = Capacity(100)
    came = [10 + number / 1000 for number in range(5000)]  # 1,000 a second for five seconds
    taken = sum(capacity.takes(at) for at in came)
    assert 500 <= taken <= 500 + 11  # and a tenth of a second's worth that was left over before


def test_a_capacity_turns_nobody_away_who_keeps_to_it() -> None:
    capacity = Capacity(200)
    assert all(capacity.takes(10 + number / 200) for number in range(1000))


def test_what_an_endpoint_saw_when_it_was_back() -> None:
    down = [(9.0, False)] * 1000  # before it came back: nobody's fault
    first_second = [(10.0 + n / 250, n < 200) for n in range(250)]  # 250 in one second: 50 too many
    second_second = [(11.0 + n / 200, True) for n in range(200)]
    found = return_of([*down, *first_second, *second_second], back_at=10.0, capacity=200.0)
    assert found
    seen = (found.peak, found.rejected_percent, found.drain)
    assert seen == pytest.approx((250 / 200, 100 * 50 / 450, (1.0 + 199 / 200) / (400 / 200)))


def test_an_endpoint_that_nobody_came_back_to_tells_nothing() -> None:
    assert return_of([(9.0, False)], back_at=10.0, capacity=200.0) is None
    assert return_of([(10.5, False)], back_at=10.0, capacity=200.0) is None


def test_a_wait_is_from_the_commit_to_the_first_byte_of_the_same_job() -> None:
    committed = {"a": 1.0, "b": 2.0}
    first_bytes = {"b": 2.5, "a": 1.25, "warm": 0.5}
    assert waits_ms(committed, first_bytes) == [250.0, 500.0]


def test_a_webhook_that_never_came_is_no_quick_one() -> None:
    with pytest.raises(KeyError):
        waits_ms({"a": 1.0, "b": 2.0}, {"a": 1.25})


def test_costs_are_compared_within_their_round() -> None:
    cost = Cost(stage=None, deliveries=1)  # type: ignore[arg-type]
    cost.rounds = [
        {BARE: 30.0, OURS: 60.0, OVER_AIOHTTP: 120.0, RECIPE: 1200.0},
        {BARE: 60.0, OURS: 240.0, RECIPE: 2400.0},  # aiohttp could not be had in this one
    ]
    found = rows(cost.ratio_rows())
    goals = {row.what: row.text() for row in cost.ratio_rows()}
    assert found[COMPARISONS[0].what] == [2.0, 4.0]
    assert "MISSED" in goals[COMPARISONS[0].what]
    over_aiohttp, recipe = (each.what for each in COMPARISONS if each.over in {OVER_AIOHTTP, RECIPE})
    assert found[over_aiohttp] == [2.0]
    assert found[recipe] == [20.0, 10.0]
    assert " met" in goals[over_aiohttp]


def test_what_was_not_measured_leaves_its_goal_in_the_table() -> None:
    cost = Cost(stage=None, deliveries=1)  # type: ignore[arg-type]
    for row in cost.ratio_rows():
        assert "not run" in row.text()
        assert row.goal is None or row.goal.text in row.text()


def test_the_first_byte_is_judged_without_one_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stage:
        folder = tmp_path

    prompt = Promptness(stage=Stage(), seconds=1.0)  # type: ignore[arg-type]
    speeds = iter([100.0, 300.0])  # on average 200 flushes a second: 5 ms each
    monkeypatch.setattr("bench.webhooks.promptness.weather", lambda folder: Weather(next(speeds), 0.5))
    monkeypatch.setattr(Promptness, "_waits_ms", lambda self, per_second: [14.0] * 98 + [99.0] * 2)
    prompt.at(500.0)
    assert (prompt.p50, prompt.p50_less_fsync, prompt.p99) == ([14.0], [9.0], [99.0])


def test_beside_bad_ones_the_healthy_are_compared_with_others_of_the_same_moment() -> None:
    prompt = Promptness(stage=EchoingStage(), seconds=1.0)  # type: ignore[arg-type]
    prompt.beside_bad_ones()
    found = rows(prompt.rows())
    assert found["healthy p99: 1 dead + 1 dripping of 100 / none"] == [pytest.approx(1.5)]


class EchoingStage:
    """Where each sender commits one job at second 0, whose first byte comes after 30 or 20 ms."""

    def urls(self, path: str = "/ok", count: int = 100) -> list[str]:
        return [f"{path}?{number}" for number in range(count)]

    def sender(self, scene: str, **options: Any) -> Any:
        healthy = options["urls"]
        assert (scene, len(healthy) + len(options["bad_urls"])) == ("paced", 100)
        return Echo("beside bad ones" if options["bad_urls"] else "alone")

    def report(self) -> dict[str, Any]:
        return {"first_bytes": {"beside bad ones": 0.03, "alone": 0.02}}


class Echo:
    """A sender."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def go(self) -> Echo:
        return self

    def result(self) -> dict[str, Any]:
        return {"committed": {self.job_id: 0.0}}
