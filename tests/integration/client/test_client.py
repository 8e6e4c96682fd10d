"""Both clients against a server that breaks connections, restarts and forgets to answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, create_server
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client import AsyncClient, Client, JobFailed, NotReachable
from tempa.client.exchange import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEP = b"ISO-10303-21;\n" * 20_000
CUT = object()  # in a script: break the connection here
TIMEOUT_SECONDS = 10.0


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeTempa:
    """Admits jobs by key and plays, for each request, the next behaviour of its script, then the plain one.

    A behaviour is a status with headers, or `CUT`: what was asked is done, the answer is lost.
    """

    requests: list[Request] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)  # key -> job id
    status: str = "queued"
    script: deque[Any] = field(default_factory=deque)
    streams: deque[list[Any]] = field(default_factory=deque)  # what each stream of events says
    downloads: deque[Any] = field(default_factory=deque)
    held: threading.Event = field(default_factory=threading.Event)  # a wait has come
    left: threading.Event = field(default_factory=threading.Event)  # a reader of a stream hung up
    port: int = 0

    def start(self) -> None:
        """Listen, on the port of last time if there was one."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._connections: list[Any] = []
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Go away like a process that is killed: at once, connections and all."""
        self._server.shutdown()
        self._server.server_close()
        for connection in self._connections:
            _cut(connection)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of(self, method: str, part: str = "") -> list[Request]:
        return [request for request in self.requests if request.method == method and part in request.path]

    def admit(self, key: str) -> tuple[str, bool]:
        known = key in self.jobs
        return self.jobs.setdefault(key, f"cad_{len(self.jobs) + 1}"), known

    def view(self, job_id: str) -> dict[str, Any]:
        sequence = {"queued": 1, "processing": 2}.get(self.status, 3)
        artifact = {
            "name": "model.step",
            "role": "step",
            "file_format": "step",
            "media_type": "model/step",
            "file_size_bytes": len(STEP),
            "sha256": hashlib.sha256(STEP).hexdigest(),
            "download_url": f"{self.url}/v1/artifacts/{job_id}/model.step?signature=s",
            "expires_at": "2026-01-01T01:00:00Z",
        }
        error = {"code": "FILLET_FAILED", "message": "No.", "retryable": False}
        return {
            "job_id": job_id,
            "status": self.status,
            "created_at": "2026-01-01T00:00:00Z",
            "result": {**artifact, "artifacts": [artifact], "measurements": {}}
            if self.status == "completed"
            else None,
            "error": error if self.status == "failed" else None,
            "engine": "opencascade-brep",
            "sequence": sequence,
            "attempt": 1,
            "cached": False,
            "progress": {"stage": self.status},
            "compute_time_ms": 0,
            "peak_rss_bytes": 0,
            "retained_until": "2026-02-01T00:00:00Z",
            "tags": {},
        }


def _cut(connection: Any) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        return  # the other side was quicker


def _handler(tempa: FakeTempa) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            tempa._connections.append(self.connection)

        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            self._note(b"")
            if "/artifacts/" in self.path:
                self._download()
            elif self.path.endswith("/events"):
                self._stream(tempa.streams.popleft())
            elif "wait=" in self.path and tempa.status == "processing":
                tempa.held.set()
                self.rfile.read(1)  # held until somebody cuts the connection
                self.close_connection = True
            else:
                view = tempa.view(self.path.split("/")[3].partition("?")[0])
                self._answer(200, json.dumps(view).encode(), ETag=f'W/"{view["sequence"]}"')

        def do_POST(self) -> None:
            self._note(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            behaviour = tempa.script.popleft() if tempa.script else None
            if isinstance(behaviour, tuple):
                self._answer(behaviour[0], b"", **behaviour[1])
                return
            if self.path == "/v1/files":
                body: dict[str, Any] = {"file_id": "file_1", "sha256": "", "file_size_bytes": 1}
                body["expires_at"] = "2026-01-01T00:00:00Z"
                known = False
            else:
                job_id, known = tempa.admit(self.headers["Idempotency-Key"])
                body = {"job_id": job_id, "status": "queued", "created_at": "2026-01-01T00:00:00Z"}
            if behaviour is CUT:
                self._hang_up()
                return
            self._answer(
                200 if known else 202, json.dumps(body).encode(), **{"Idempotency-Replayed": str(known)}
            )

        def _note(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            tempa.requests.append(Request(self.command, self.path, headers, body))

        def _answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _download(self) -> None:
            behaviour = tempa.downloads.popleft() if tempa.downloads else STEP
            if isinstance(behaviour, int):
                self._answer(behaviour, b"<Error/>")
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(STEP)))
            self.end_headers()
            self.wfile.write(behaviour)
            if len(behaviour) < len(STEP):
                self._hang_up()

        def _stream(self, parts: list[Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for part in parts:
                if part is CUT:
                    self._hang_up()
                    return
                self.wfile.write(part)
                self.wfile.flush()
            self.close_connection = True
            if not parts or b"completed" not in parts[-1]:
                self.rfile.read(1)  # stay open until the reader hangs up
                tempa.left.set()

        def _hang_up(self) -> None:
            self.close_connection = True
            _cut(self.connection)

    return Handler


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
            return [value for value, _ in zip(values, range(count), strict=False)]

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
def tempa() -> Iterator[FakeTempa]:
    tempa = FakeTempa()
    tempa.start()
    yield tempa
    tempa.stop()


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
    tempa.script.extend([CUT, (503, {"Retry-After": "3"}), CUT])

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
            [b": hello\n\n", event(1, "queued"), event(2, "started")[:-20], CUT],
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
    tempa.downloads.extend([STEP[:1000], 403, bytes(len(STEP)), 503])

    (path,) = caller.do("download", "cad_1", tmp_path)

    assert path == tmp_path / "model.step"
    assert path.read_bytes() == STEP
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed_without_the_key(tempa: FakeTempa, caller: Caller, tmp_path: Path) -> None:
    """A bucket must not get it, and refuses requests that carry both a signature and a key."""
    tempa.status = "completed"

    caller.do("download", "cad_1", tmp_path)

    (download,) = tempa.of("GET", "/artifacts/")
    assert "authorization" not in download.headers


def test_a_file_is_sent_again_from_its_beginning(tempa: FakeTempa, caller: Caller, tmp_path: Path) -> None:
    file = tmp_path / "part.step"
    file.write_bytes(STEP)
    tempa.script.append(CUT)

    assert caller.do("upload", file).file_id == "file_1"

    assert [request.body == STEP for request in tempa.of("POST")] == [True, True]
    assert {request.headers["content-length"] for request in tempa.of("POST")} == {str(len(STEP))}


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
        ready = {"url": tempa.url, "api_key": "secret-key"}
        (tmp_path / "tempa/ready.json").write_text(json.dumps(ready))

    def start_elsewhere() -> None:
        tempa.port = 0
        tempa.start()
        write_ready_file()

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TEMPA_URL", raising=False)
    write_ready_file()
    before = tempa.port
    with closing(kind(nap, None)) as caller:
        with create_server(("127.0.0.1", 0)):
            tempa.stop()
            nap.meanwhile.append(start_elsewhere)

            assert caller.do("job", "cad_1").job_id == "cad_1"

    assert tempa.port != before
