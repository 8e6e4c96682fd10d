"""Both clients against a server that breaks connections, restarts and forgets to answer."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from socket import create_server
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client import AsyncClient, Client, JobFailed, NotReachable
from tempa.client.exchange import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.integration.client.conftest import FakeTempa

TIMEOUT_SECONDS = 10.0


class Zero:
    def random(self) -> float:
        return 0.0


@dataclass
class Nap:
    """Time that passes when the client sleeps, and what happens in the world meanwhile."""

    seconds: float = 0.0
    naps: list[float] = field(default_factory=list)
    meanwhile: deque[Callable[[], None]] = field(default_factory=deque)

    def sleep(self, seconds: float) -> None:
        self.seconds += max(seconds, 0.1)
        self.naps.append(seconds)
        if self.meanwhile:
            self.meanwhile.popleft()()

    async def sleep_awaited(self, seconds: float) -> None:
        self.sleep(seconds)

    @property
    def pace(self) -> Pace:
        return Pace(dice=Zero(), monotonic=lambda: self.seconds, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


class Blocking:
    """Calls `Client`."""

    def __init__(self, nap: Nap, url: str | None) -> None:
        self.client = Client(url, "secret-key", pace=nap.pace, sleep=nap.sleep)

    def do(self, name: str, *args: Any, **options: Any) -> Any:
        return getattr(self.client, name)(*args, **options)

    def take(self, count: int, name: str, *args: Any) -> list[Any]:
        """The first values of an iterator, which is then closed."""
        with closing(getattr(self.client, name)(*args)) as values:
            return list(islice(values, count))

    def close(self) -> None:
        self.client.close()


class Awaited:
    """Calls `AsyncClient`, in a loop of its own."""

    def __init__(self, nap: Nap, url: str | None) -> None:
        self._runner = asyncio.Runner()
        self.client = AsyncClient(url, "secret-key", pace=nap.pace, sleep=nap.sleep_awaited)

    def do(self, name: str, *args: Any, **options: Any) -> Any:
        return self._runner.run(getattr(self.client, name)(*args, **options))

    def take(self, count: int, name: str, *args: Any) -> list[Any]:
        return self._runner.run(self._take(count, getattr(self.client, name)(*args)))

    async def _take(self, count: int, values: Any) -> list[Any]:
        taken: list[Any] = []
        async for value in values:
            taken.append(value)
            if len(taken) == count:
                break
        await values.aclose()
        return taken

    def close(self) -> None:
        self._runner.run(self.client.close())
        self._runner.close()


Caller = Blocking | Awaited


@pytest.fixture
def nap() -> Nap:
    return Nap()


@pytest.fixture(params=[Blocking, Awaited])
def caller(request: pytest.FixtureRequest, tempa: FakeTempa, nap: Nap) -> Iterator[Caller]:
    caller: Caller = request.param(nap, tempa.url)
    yield caller
    caller.close()


def event(sequence: int, kind: str) -> bytes:
    body = json.dumps(
        {"sequence": sequence, "type": f"job.{kind}", "at": "2026-01-01T00:00:00Z", "job_id": "cad_1"}
    )
    return f"event: job.{kind}\nid: {sequence}\ndata: {body}\n\n".encode()


def test_a_ticket_whose_answer_is_lost_is_still_one_job(tempa: FakeTempa, caller: Caller, nap: Nap) -> None:
    tempa.posts.extend([tempa.CUT, (503, {"Retry-After": "3"}), tempa.CUT])

    handle = caller.do("generate_model", {"length": 300.0})

    assert (handle.id, handle.replayed) == ("cad_1", True)
    assert list(tempa.jobs) == [handle.idempotency_key]
    assert [request.headers["idempotency-key"] for request in tempa.of("POST")] == [
        handle.idempotency_key
    ] * 4
    assert nap.naps == [0.0, 3.0, 0.0]


def test_the_key_goes_along_with_every_call(tempa: FakeTempa, caller: Caller) -> None:
    caller.do("submit", {})
    caller.do("job", "cad_1")

    assert {request.headers["authorization"] for request in tempa.requests} == {"Bearer secret-key"}
    assert {request.headers["user-agent"].partition("/")[0] for request in tempa.requests} == {"tempa-python"}


def test_a_wait_survives_a_server_that_is_killed_and_started_again(
    tempa: FakeTempa, caller: Caller, nap: Nap
) -> None:
    def start_again() -> None:
        tempa.status = "completed"
        tempa.start()

    def kill() -> None:
        assert tempa.held.wait(TIMEOUT_SECONDS)
        tempa.stop()

    tempa.status = "processing"
    nap.meanwhile.extend([lambda: None, lambda: None, start_again])
    killer = threading.Thread(target=kill)
    killer.start()

    view = caller.do("wait", "cad_1")

    killer.join()
    assert view.status == "completed"
    assert len(nap.naps) >= 3


def test_a_wait_tells_why_the_job_failed(tempa: FakeTempa, caller: Caller) -> None:
    tempa.status = "failed"

    with pytest.raises(JobFailed, match="FILLET_FAILED"):
        caller.do("wait", "cad_1")


def test_a_stream_that_is_cut_within_an_event_is_resumed(tempa: FakeTempa, caller: Caller) -> None:
    tempa.streams.extend(
        [
            [b": hello\n\n", event(1, "queued"), event(2, "started")[:-20], tempa.CUT],
            [b'event: progress\ndata: {"fraction": 0.5}\n\n', event(2, "started"), event(3, "completed")],
        ]
    )

    events = caller.take(100, "events", "cad_1")

    assert [(event.sequence, event.type) for event in events] == [
        (1, "job.queued"),
        (None, "progress"),
        (2, "job.started"),
        (3, "job.completed"),
    ]
    assert [request.headers.get("last-event-id") for request in tempa.of("GET", "/events")] == [None, "1"]


def test_who_stops_reading_hangs_up(tempa: FakeTempa, caller: Caller) -> None:
    tempa.streams.append([event(1, "queued")])

    assert len(caller.take(1, "events", "cad_1")) == 1

    assert tempa.left.wait(TIMEOUT_SECONDS)


def test_a_download_is_verified_and_survives_broken_transfers_and_expired_links(
    tempa: FakeTempa, caller: Caller, tmp_path: Path
) -> None:
    tempa.status = "completed"
    tempa.downloads.extend([tempa.content[:1000], 403, bytes(len(tempa.content)), 503])

    (path,) = caller.do("download", "cad_1", tmp_path)

    assert path == tmp_path / "model.step"
    assert path.read_bytes() == tempa.content
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed_without_the_key(tempa: FakeTempa, caller: Caller, tmp_path: Path) -> None:
    """A bucket must not get it, and refuses requests that carry both a signature and a key."""
    tempa.status = "completed"

    caller.do("download", "cad_1", tmp_path)

    (download,) = tempa.of("GET", "/artifacts/")
    assert "authorization" not in download.headers


def test_a_file_is_sent_again_from_its_beginning(tempa: FakeTempa, caller: Caller, tmp_path: Path) -> None:
    file = tmp_path / "part.step"
    file.write_bytes(tempa.content)
    tempa.posts.append(tempa.CUT)

    assert caller.do("upload", file).file_id == "file_1"

    assert [request.body == tempa.content for request in tempa.of("POST")] == [True, True]
    assert {request.headers["content-length"] for request in tempa.of("POST")} == {str(len(tempa.content))}


def test_a_disk_that_cannot_be_written_is_not_taken_for_a_broken_connection(
    tempa: FakeTempa, caller: Caller, tmp_path: Path
) -> None:
    tempa.status = "completed"
    (tmp_path / "out").write_text("a file where the folder should be")

    with pytest.raises(FileExistsError):
        caller.do("download", "cad_1", tmp_path / "out")


def test_nobody_there_is_told_with_the_address(nap: Nap, caller: Caller, tempa: FakeTempa) -> None:
    tempa.stop()

    with pytest.raises(NotReachable, match=f"No connection to 127.0.0.1:{tempa.port}"):
        caller.do("job", "cad_1")

    assert nap.seconds >= 59
    tempa.start()


def test_a_proxy_in_the_environment_is_not_asked_for_the_local_server(
    tempa: FakeTempa, nap: Nap, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("HTTP_PROXY", dead)
    monkeypatch.setenv("http_proxy", dead)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    with Client(tempa.url, "k", pace=nap.pace, sleep=nap.sleep) as client:
        assert client.job("cad_1").job_id == "cad_1"


@pytest.mark.parametrize("kind", [Blocking, Awaited])
def test_a_local_server_that_comes_back_on_another_port_is_found_again(
    kind: type[Caller], tempa: FakeTempa, nap: Nap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_ready_file() -> None:
        (tmp_path / "tempa").mkdir(exist_ok=True)
        ready = {"url": tempa.url, "api_key": "secret-key", "pid": os.getpid()}
        (tmp_path / "tempa/ready.json").write_text(json.dumps(ready))

    def start_elsewhere() -> None:
        with create_server(("127.0.0.1", before)):  # that port is somebody else's now
            tempa.port = 0
            tempa.start()
        write_ready_file()

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TEMPA_URL", raising=False)
    write_ready_file()
    before = tempa.port
    with closing(kind(nap, None)) as caller:
        tempa.stop()
        nap.meanwhile.append(start_elsewhere)

        assert caller.do("job", "cad_1").job_id == "cad_1"

    assert tempa.port != before
