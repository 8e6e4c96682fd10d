"""A server that breaks connections, restarts and forgets to answer, as its script says."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from socket import socket


class Behaviour(Enum):
    """What to do in place of answering."""

    CUT = "do what was asked, then break the connection"


STEP = b"ISO-10303-21;\n" * 20_000


@dataclass
class Request:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeTempa:
    """Admits jobs by key. Each script is played request by request, then the plain behaviour follows."""

    status: str = "queued"  # of every job
    posts: deque[Behaviour | tuple[int, dict[str, str]]] = field(default_factory=deque)
    streams: deque[list[bytes | Behaviour]] = field(default_factory=deque)
    downloads: deque[bytes | int] = field(default_factory=deque)  # a body (a part of it: cut), or a status
    requests: list[Request] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)  # key -> job id
    held: threading.Event = field(default_factory=threading.Event)  # a wait has come
    left: threading.Event = field(default_factory=threading.Event)  # a reader of a stream hung up
    port: int = 0
    CUT: ClassVar = Behaviour.CUT
    content: bytes = STEP

    def start(self) -> None:
        """Listen, on the port of last time if there was one."""
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.tempa = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Go away like a process that is killed: at once, connections and all."""
        self._server.shutdown()
        self._server.server_close()
        for connection in self._server.connections:
            _cut(connection)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of(self, method: str, part: str = "") -> list[Request]:
        """The requests that came, by method and path."""
        return [request for request in self.requests if request.method == method and part in request.path]

    def admit(self, key: str) -> tuple[str, bool]:
        """The job of this key, and whether it stood already."""
        known = key in self.jobs
        return self.jobs.setdefault(key, f"cad_{len(self.jobs) + 1}"), known

    def view(self, job_id: str) -> dict[str, Any]:
        done = self.status == "completed"
        error = {"code": "FILLET_FAILED", "message": "No.", "retryable": False}
        return {
            "job_id": job_id,
            "status": self.status,
            "created_at": "2026-01-01T00:00:00Z",
            "result": self._result(job_id) if done else None,
            "error": error if self.status == "failed" else None,
            "engine": "opencascade-brep",
            "sequence": {"queued": 1, "processing": 2}.get(self.status, 3),
            "attempt": 1,
            "cached": False,
            "progress": {"stage": self.status},
            "compute_time_ms": 0,
            "peak_rss_bytes": 0,
            "retained_until": "2026-02-01T00:00:00Z",
            "tags": {},
        }

    def _result(self, job_id: str) -> dict[str, Any]:
        artifact = {
            "name": "model.step",
            "role": "step",
            "file_format": "step",
            "media_type": "model/step",
            "file_size_bytes": len(self.content),
            "sha256": hashlib.sha256(self.content).hexdigest(),
            "download_url": f"{self.url}/v1/artifacts/{job_id}/model.step?signature=s",
            "expires_at": "2026-01-01T01:00:00Z",
        }
        return {**artifact, "artifacts": [artifact], "measurements": {}}


def _cut(connection: socket) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        return  # the other side was quicker


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tempa: FakeTempa

    def __init__(self, *args: Any) -> None:
        self.connections: list[socket] = []
        super().__init__(*args)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.tempa = self.server.tempa
        self.server.connections.append(self.connection)

    def log_message(self, *_: object) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self._note(b"")
        if "/artifacts/" in self.path:
            self._download(self.tempa.downloads.popleft() if self.tempa.downloads else STEP)
        elif self.path.endswith("/events"):
            self._stream(self.tempa.streams.popleft())
        elif "wait=" in self.path and self.tempa.status == "processing":
            self.tempa.held.set()
            self._until_hung_up()
        else:
            view = self.tempa.view(self.path.split("/")[3].partition("?")[0])
            self._answer(200, view, ETag=f'W/"{view["sequence"]}"')

    def do_POST(self) -> None:
        self._note(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        behaviour = self.tempa.posts.popleft() if self.tempa.posts else None
        if isinstance(behaviour, tuple):
            self._answer(behaviour[0], {}, **behaviour[1])
            return
        answer: Callable[[], None] = self._store if self.path == "/v1/files" else self._admit
        answer() if behaviour is None else self._lose(answer)

    def _admit(self) -> None:
        job_id, known = self.tempa.admit(self.headers["Idempotency-Key"])
        body = {"job_id": job_id, "status": "queued", "created_at": "2026-01-01T00:00:00Z"}
        self._answer(200 if known else 202, body, **{"Idempotency-Replayed": str(known)})

    def _store(self) -> None:
        body = {"file_id": "file_1", "sha256": "", "file_size_bytes": 1, "expires_at": "2026-01-01T00:00:00Z"}
        self._answer(201, body)

    def _lose(self, answer: Callable[[], None]) -> None:
        """Do what was asked; the answer goes into a connection that is gone."""
        self._hang_up()
        try:
            answer()
        except OSError:
            return

    def _note(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.tempa.requests.append(Request(self.command, self.path, headers, body))

    def _answer(self, status: int, body: dict[str, Any], **headers: str) -> None:
        content = json.dumps(body).encode()
        self._head(status, **headers, **{"Content-Length": str(len(content))})
        self.wfile.write(content)

    def _head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _download(self, content: bytes | int) -> None:
        if isinstance(content, int):
            self._answer(content, {})
            return
        self._head(200, **{"Content-Length": str(len(STEP))})
        self.wfile.write(content)
        if len(content) < len(STEP):
            self._hang_up()

    def _stream(self, parts: list[bytes | Behaviour]) -> None:
        """The stream ends after its last part if that is the terminal event; else it stays open."""
        self._head(200, **{"Content-Type": "text/event-stream", "Connection": "close"})
        for part in parts:
            if isinstance(part, Behaviour):
                self._hang_up()
                return
            self.wfile.write(part)
        if isinstance(parts[-1], bytes) and b"completed" not in parts[-1]:
            self._until_hung_up()
            self.tempa.left.set()

    def _until_hung_up(self) -> None:
        self.rfile.read(1)
        self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True
        _cut(self.connection)


@pytest.fixture
def tempa() -> Iterator[FakeTempa]:
    tempa = FakeTempa()
    tempa.start()
    yield tempa
    tempa.stop()
