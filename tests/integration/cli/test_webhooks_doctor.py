"""`tempa webhooks doctor` against receivers that do well, and receivers that each do one thing wrong."""

from __future__ import annotations

import json
import ssl
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from typer.testing import CliRunner, Result

from tempa.cli import output
from tempa.cli.main import app
from tempa.core.signing import new_secret
from tempa.testing.receiver import Receiver
from tempa.webhooks import WebhookVerificationError, verify
from tempa.webhooks.ed25519 import new_private_key, public_key_of
from tests.integration.senders.certificates import certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Answer = Callable[[bytes, Any], int]

SECRET = new_secret()
PLAYED = [
    "valid",
    "unicode",
    "large",
    "unknown-type",
    "duplicate",
    "tampered",
    "wrong-key",
    "unsigned",
    "stale",
]


def proper(body: bytes, headers: Any, secret: str = SECRET, tolerance_seconds: float = 300) -> int:
    """What a good receiver answers. Every other one here differs from it in one thing."""
    try:
        verify(body, headers, secret, tolerance_seconds)
    except WebhookVerificationError:
        return 401
    return 204


@contextmanager
def serving(answer: Answer, *, tls: ssl.SSLContext | None = None, ahead_seconds: float = 0) -> Iterator[str]:
    """A server of http.server, its URL. `ahead_seconds`: of its clock."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(answer(body, self.headers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(datetime.fromtimestamp(time.time() + ahead_seconds, UTC), usegmt=True)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def examine(url: str, *options: str, secret: str = SECRET) -> Result:
    return CliRunner().invoke(app, ["webhooks", "doctor", url, "--secret", secret, *options])


def states(result: Result) -> dict[str, str]:
    return {finding["name"]: finding["state"] for finding in json.loads(result.stdout)["findings"]}


def advice(result: Result, name: str) -> str:
    (found,) = [one for one in json.loads(result.stdout)["findings"] if one["name"] == name]
    return str(found["advice"])


def grade(result: Result) -> str:
    return str(json.loads(result.stdout)["grade"])


def test_a_proper_receiver_gets_an_a() -> None:
    with serving(proper) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (0, "A"), result.output
    assert states(result) == dict.fromkeys([*PLAYED, "speed", "clock"], "pass")
    findings = json.loads(result.stdout)["findings"]
    assert all(one["duration_ms"] is not None for one in findings if one["name"] in PLAYED)
    assert "remember webhook-id" in advice(result, "duplicate")


def test_what_is_played_is_what_it_says() -> None:
    with Receiver() as receiver:
        examine(receiver.url("/ok"))
        requests = receiver.wait_for(10)

    by_case = {request.headers["webhook-id"].partition("_doctor_")[2][9:]: request for request in requests}
    first, second = (request for request in requests if request.headers["webhook-id"].endswith("duplicate"))
    assert [name.replace("_", "-") for name in by_case] == PLAYED
    assert first.body == second.body
    assert len(by_case["large"].body) > 200_000
    assert "😀" in by_case["unicode"].body.decode()
    assert json.loads(by_case["unknown_type"].body)["type"] == "tempa_doctor.unheard_of"
    assert not [name for name in by_case["unsigned"].headers if "signature" in name]
    with pytest.raises(WebhookVerificationError, match="no_match"):
        verify(by_case["tampered"].body, by_case["tampered"].headers, SECRET)
    with pytest.raises(WebhookVerificationError, match="timestamp_too_old"):
        verify(by_case["stale"].body, by_case["stale"].headers, SECRET)
    assert verify(by_case["stale"].body, by_case["stale"].headers, SECRET, 3700)
    assert verify(by_case["valid"].body, by_case["valid"].headers, SECRET)["data"]["tags"] == {
        "tempa": "doctor"
    }


def test_a_receiver_of_ed25519_is_examined_by_its_private_key() -> None:
    private = new_private_key()
    with serving(lambda body, headers: proper(body, headers, public_key_of(private))) as url:
        result = examine(url, secret=private)

    assert (result.exit_code, grade(result)) == (0, "A"), result.output


def test_one_that_accepts_everything_gets_an_f() -> None:
    with serving(lambda _body, _headers: 200) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (1, "F")
    found = states(result)
    assert [name for name in PLAYED if found[name] == "fail"] == ["tampered", "wrong-key", "unsigned"]
    assert found["stale"] == "warn"
    assert "anybody can post here" in advice(result, "unsigned")


def no_clock(body: bytes, headers: Any) -> int:
    return proper(body, headers, tolerance_seconds=float("inf"))


def ascii_only(body: bytes, headers: Any) -> int:
    return proper(body, headers) if body.isascii() or len(body) > 1000 else 500


def small(body: bytes, headers: Any) -> int:
    return 413 if len(body) > 100_000 else proper(body, headers)


def strict(body: bytes, headers: Any) -> int:
    return 400 if b"unheard_of" in body else proper(body, headers)


def crashing(body: bytes, headers: Any) -> int:
    return 500 if proper(body, headers) == 401 else 204


@pytest.mark.parametrize(
    ("answer", "expected", "name", "state", "words"),
    [
        (no_clock, "B", "stale", "warn", "300 s off"),
        (ascii_only, "D", "unicode", "fail", "decode them as UTF-8 after that"),
        (small, "D", "large", "fail", "bodies up to 256 KiB"),
        (strict, "D", "unknown-type", "fail", "ignore them"),
        (crashing, "C", "tampered", "warn", "Answer 400 or 401"),
    ],
)
def test_one_thing_wrong_is_the_one_thing_named(
    answer: Answer, expected: str, name: str, state: str, words: str
) -> None:
    with serving(answer) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (int(state == "fail"), expected), result.stdout
    assert states(result)[name] == state
    assert words in advice(result, name)


def test_one_that_calls_a_repetition_a_conflict_is_told() -> None:
    seen: set[str] = set()

    def answer(body: bytes, headers: Any) -> int:
        status = proper(body, headers)
        known = headers["webhook-id"] in seen
        seen.add(headers["webhook-id"])
        return 409 if known and status == 204 else status

    with serving(answer) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (1, "D")
    assert states(result)["duplicate"] == "fail"
    assert "Answer 2xx to an event you have handled before" in advice(result, "duplicate")


def test_refusing_everything_earns_nothing() -> None:
    with serving(lambda _body, _headers: 401) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (1, "F")
    assert states(result)["tampered"] == "warn"
    assert "has it the secret used here?" in advice(result, "valid")


def test_a_redirect_is_a_failure_that_names_where_to() -> None:
    with Receiver() as receiver:
        result = examine(receiver.url("/redirect/308"))
        paths = {request.path for request in receiver.requests}

    assert (result.exit_code, grade(result)) == (1, "F")
    assert paths == {"/redirect/308"}
    assert "to /landed; give that URL" in advice(result, "valid")


@pytest.mark.parametrize(("path", "words"), [("/reset", "hung up"), ("/status-line/none", "no HTTP/1.1")])
def test_without_an_answer_the_rest_is_not_played(path: str, words: str) -> None:
    with Receiver() as receiver:
        result = examine(receiver.url(path))
        count = len(receiver.requests)

    assert (result.exit_code, grade(result), count) == (1, "F", 1)
    assert list(states(result)) == ["valid"]
    assert words in advice(result, "valid")
    assert "not played" in json.loads(result.stdout)["notes"][0]


def test_a_silent_one_costs_one_deadline() -> None:
    with Receiver() as receiver:
        result = examine(receiver.url("/half-open"), "--timeout", "0.3")

    assert (result.exit_code, grade(result)) == (1, "F")
    assert "Answer 2xx first and work afterwards" in advice(result, "valid")


def test_a_clock_that_is_off_is_a_warning() -> None:
    with serving(proper, ahead_seconds=-3600) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (0, "B")
    (found,) = [one for one in json.loads(result.stdout)["findings"] if one["name"] == "clock"]
    assert found["finding"].startswith(("its clock is 3600 s behind", "its clock is 3599 s behind"))


@pytest.mark.parametrize(("days", "state"), [(5, "warn"), (90, "pass")])
def test_the_days_of_a_certificate_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, state: str
) -> None:
    file = certificate(tmp_path, x509.IPAddress(ip_address("127.0.0.1")), days=days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    with serving(proper, tls=context) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (0, "B" if state == "warn" else "A"), result.stdout
    assert states(result)["certificate"] == state
    (found,) = [one for one in json.loads(result.stdout)["findings"] if one["name"] == "certificate"]
    assert found["finding"] == f"it is good for {days} days more"


def test_an_expired_certificate_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, x509.IPAddress(ip_address("127.0.0.1")), days=-3)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    with serving(proper, tls=context) as url:
        result = examine(url)

    assert (result.exit_code, grade(result)) == (1, "F")
    assert states(result) == {"valid": "fail", "certificate": "fail"}


def test_a_person_gets_a_table_and_is_told_what_a_server_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    with serving(no_clock) as url:
        result = examine(url)

    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[2:4]] == [["ok", "valid"], ["ok", "unicode"]]
    assert any(line.startswith("!!  stale") for line in lines)
    assert "Grade: B" in lines
    assert lines[-1].startswith("A server takes this URL only if its settings open it")


@pytest.mark.parametrize(
    ("url", "secret", "words"),
    [
        ("ftp://a.example/", SECRET, "absolute URL"),
        ("https://user@a.example/", SECRET, "plain host"),
        ("http://127.0.0.1:1/", "whsec_!", "The secret cannot be used"),
        ("http://127.0.0.1:1/", public_key_of(new_private_key()), "give what signs"),
    ],
)
def test_what_cannot_be_used_is_told(url: str, secret: str, words: str) -> None:
    result = examine(url, secret=secret)

    assert result.exit_code == 2
    assert words in result.stderr
