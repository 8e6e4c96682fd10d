"""`tempa webhooks listen --forward-to`: the server's stream, POSTed to a local receiver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx2
import pytest

from tempa.cli import forward
from tempa.core.signing import new_secret, webhook_headers
from tempa.webhooks import verify

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeServer, Terminal

STREAM = "GET /v1/webhooks/stream"
SECRET = new_secret()
NOW = 1_800_000_000


URL = "http://localhost:3000/hook"


class LocalReceiver:
    """Answers with `status`; None: nobody is there."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.requests: list[httpx2.Request] = []

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.status is None:
            raise httpx2.ConnectError("Connection refused")
        self.requests.append(request)
        return httpx2.Response(self.status)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> LocalReceiver:
    local = LocalReceiver()
    monkeypatch.setattr(
        forward, "_session", lambda: httpx2.Client(transport=httpx2.MockTransport(local.handle))
    )
    return local


def a_webhook(position: int) -> str:
    event = {"type": "cad_generation.failed", "id": f"evt_{position}", "data": {"job_id": "cad_1ø"}}
    body = json.dumps(event, ensure_ascii=False)
    headers = dict(webhook_headers([SECRET], f"evt_{position}", NOW, body.encode()))
    data = {"position": position, "headers": {"User-Agent": "Tempa/1", **headers}, "body": body}
    return f"event: webhook\nid: {position}\ndata: {json.dumps(data)}\n\n"


def a_stream(*messages: str, start: int = 4) -> httpx2.Response:
    ready = f'event: ready\nid: {start}\ndata: {{"position": {start}}}\n\n: keep-alive\n\n'
    text = "".join((ready, *messages))
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())


def test_each_webhook_arrives_as_it_was_signed(
    server: FakeServer, tempa: Terminal, receiver: LocalReceiver
) -> None:
    server.on(STREAM, a_stream(a_webhook(5), a_webhook(9)))

    shown = tempa.show("webhooks", "listen", "--forward-to", URL, "--count", "2")

    assert shown.exit_code == 0, shown.output
    for request, position in zip(receiver.requests, (5, 9), strict=True):
        assert str(request.url) == URL
        assert verify(request.content, request.headers, SECRET, now=NOW)["id"] == f"evt_{position}"
        assert request.headers["user-agent"] == "Tempa/1"
    assert shown.stdout.splitlines() == ["cad_generation.failed  cad_1ø  -> 200"] * 2


def test_a_stream_that_breaks_is_read_on_from_where_it_was(
    server: FakeServer, tempa: Terminal, receiver: LocalReceiver
) -> None:
    receiver.status = 503
    server.on(STREAM, a_stream(), a_stream(a_webhook(5)), httpx2.ConnectError("gone"), a_stream(a_webhook(6)))

    shown = tempa.run("webhooks", "listen", "--forward-to", URL, "--count", "2")

    told = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(one["position"], one["http_status"]) for one in told] == [(5, 503), (6, 503)]
    resumed = [request.headers.get("last-event-id") for request in server.requests]
    assert resumed == [None, "4", "5", "5"]


def test_a_receiver_that_is_not_there_is_told(
    server: FakeServer, tempa: Terminal, receiver: LocalReceiver
) -> None:
    receiver.status = None
    server.on(STREAM, a_stream(a_webhook(5)))
    shown = tempa.run("webhooks", "listen", "--forward-to", URL, "--count", "1")
    (told,) = [json.loads(line) for line in shown.stdout.splitlines()]
    assert (told["http_status"], told["error"]) == (None, "Connection refused")


def test_which_events_is_asked_for(server: FakeServer, tempa: Terminal, receiver: LocalReceiver) -> None:
    server.on(STREAM, a_stream(a_webhook(5)))
    tempa.run(
        *("webhooks", "listen", "--forward-to", URL, "--count", "1"),
        *("--event", "job.failed", "--event", "endpoint.*"),
    )
    assert server.requests[0].url.params["events"] == "job.failed,endpoint.*"


def test_what_is_no_address_is_a_slip(server: FakeServer, tempa: Terminal) -> None:
    assert tempa.run("webhooks", "listen", "--forward-to", "localhost:3000").exit_code == 2
