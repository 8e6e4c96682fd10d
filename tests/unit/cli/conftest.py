"""The command line against a server that is a table of answers: no socket, no waiting."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

from tempa.cli import connect, output
from tempa.cli.main import app
from tempa.client import Client
from tempa.client.exchange import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class FakeServer:
    """Answers calls from lists, one a call; the last answer of a list stays. Keeps what was asked."""

    answers: dict[str, deque[httpx2.Response | BaseException]] = field(default_factory=dict)
    requests: list[httpx2.Request] = field(default_factory=list)

    def on(self, call: str, *answers: httpx2.Response | BaseException) -> None:
        """`call` is "GET /v1/jobs/cad_1", without the query."""
        self.answers[call] = deque(answers)

    def on_json(self, call: str, *bodies: Any, status: int = 200) -> None:
        self.on(call, *(httpx2.Response(status, json=body) for body in bodies))

    def refuse(self, call: str, status: int, slug: str, detail: str, **members: Any) -> None:
        body = {"type": f"urn:tempa:problem:{slug}", "status": status, "detail": detail, **members}
        self.on_json(call, body, status=status)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        call = f"{request.method} {request.url.path}"
        assert call in self.answers, f"nothing answers {call}"
        queue = self.answers[call]
        answer = queue[0] if len(queue) == 1 else queue.popleft()
        if isinstance(answer, BaseException):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def body(self, number: int = -1) -> Any:
        return json.loads(self.requests[number].content)


class Middle:
    def random(self) -> float:
        return 0.5


@dataclass
class Terminal:
    """Runs `tempa ...`, as a person would or in a pipe."""

    monkeypatch: pytest.MonkeyPatch

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        """In a pipe."""
        return CliRunner().invoke(app, list(arguments), input=stdin)

    def show(self, *arguments: str) -> Result:
        """At a terminal."""
        self.monkeypatch.setattr(output, "_is_terminal", lambda: True)
        return self.run(*arguments)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """What every command finds when it looks for a server."""
    fake = FakeServer()
    seconds = [0.0]

    def sleep(duration: float) -> None:
        seconds[0] += duration

    def open_client(timeout_seconds: float = 10.0) -> Client:
        return Client(
            "http://tempa.test",
            "a-key",
            timeout_seconds=timeout_seconds,
            transport=httpx2.MockTransport(fake.handle),
            pace=Pace(dice=Middle(), monotonic=lambda: seconds[0]),
            sleep=sleep,
        )

    monkeypatch.setattr(connect, "open_client", open_client)
    return fake


@pytest.fixture
def tempa(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(monkeypatch)


def job_view(status: str, **fields: Any) -> dict[str, Any]:
    """A job as the server shows it."""
    ended = status in {"completed", "failed", "canceled"}
    view: Mapping[str, Any] = {
        "job_id": "cad_1",
        "status": status,
        "created_at": "2026-01-01T00:00:00Z",
        "started_at": None,
        "completed_at": "2026-01-01T00:00:02Z" if ended else None,
        "result": None,
        "error": None,
        "engine": "opencascade-brep",
        "sequence": 3,
        "attempt": 1,
        "cached": False,
        "progress": {"stage": status, "fraction": None, "queue_position": None, "eta_seconds": None},
        "compute_time_ms": 12,
        "peak_rss_bytes": 91_000_000,
        "retained_until": "2026-01-31T00:00:00Z",
        "tags": {},
    }
    return {**view, **fields}


@pytest.fixture(name="job_view")
def job_view_fixture() -> Any:
    return job_view
