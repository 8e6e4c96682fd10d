"""`tempa webhooks verify`: does it verify, and if not, which of the known mistakes is it?"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import pytest
from standardwebhooks import Webhook

from tempa.cli.signatures import check
from tempa.core.signing import hex_signature
from tempa.testing.receiver import Received

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Terminal

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"event":"cad_generation.completed","type":"cad_generation.completed","id":"evt_1","data":{"n":1.0}}'


def signed(body: bytes = BODY, secret: str = SECRET, age_seconds: int = 0) -> dict[str, str]:
    """Headers as the official library signs them, and the plain signature beside them."""
    at = int(time.time()) - age_seconds
    signature = Webhook(secret).sign("evt_1", datetime.fromtimestamp(at, UTC), body.decode())
    return {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": signature,
        "X-Webhook-Signature": hex_signature(secret, body),
    }


def test_a_delivery_verifies_by_both_signatures() -> None:
    verdict = check(BODY, signed(), [SECRET])

    assert verdict.verifies
    assert verdict.hex_matches
    assert verdict.event is not None
    assert verdict.event["id"] == "evt_1"


def test_either_secret_will_do_while_it_rotates() -> None:
    assert check(BODY, signed(secret=OTHER), [SECRET, OTHER]).verifies


@pytest.mark.parametrize(
    ("body", "secret", "hint"),
    [
        (BODY + b"\n", SECRET, "ends in a line break"),
        (BODY, SECRET + "\n", "white space around the secret"),
        (json.dumps(json.loads(BODY)).encode(), SECRET, "parsed and written again"),
        (json.dumps(json.loads(BODY), indent=2).encode(), SECRET, "parsed and written again"),
        (BODY, OTHER, "The secret is another one"),
        (BODY.replace(b"1.0", b"2.0"), SECRET, "or the body was changed"),
    ],
)
def test_the_known_mistakes_are_named(body: bytes, secret: str, hint: str) -> None:
    verdict = check(body, signed(), [secret])

    assert not verdict.verifies
    assert not verdict.hex_matches
    assert hint in (verdict.hint or "")


def test_a_changed_id_is_told_from_a_changed_body() -> None:
    verdict = check(BODY, {**signed(), "Webhook-Id": "evt_2"}, [SECRET])

    assert (verdict.verifies, verdict.hex_matches) == (False, True)
    assert "webhook-id, webhook-timestamp or webhook-signature was changed" in (verdict.hint or "")


def test_a_kept_delivery_names_the_option_for_it() -> None:
    verdict = check(BODY, signed(age_seconds=3600), [SECRET])

    assert (verdict.verifies, verdict.reason) == (False, "timestamp_too_old")
    assert "--tolerance inf" in (verdict.hint or "")


def test_without_the_plain_signature_the_other_one_is_looked_at() -> None:
    headers = signed()
    del headers["X-Webhook-Signature"]

    verdict = check(BODY + b"\n", headers, [SECRET])

    assert (verdict.reason, verdict.hex_matches) == ("no_match", None)
    assert "ends in a line break" in (verdict.hint or "")


@pytest.mark.parametrize(
    ("secret", "hint"),
    [(SECRET, None), (SECRET.removeprefix("whsec_"), "whsec_ included")],
    ids=["whole", "without-whsec"],
)
def test_a_secret_without_its_prefix_explains_the_plain_signature(secret: str, hint: str | None) -> None:
    """The standard signature reads the secret with or without it, the plain one as it stands."""
    verdict = check(BODY, signed(), [secret])

    assert verdict.verifies
    assert verdict.hex_matches is (hint is None)
    assert (verdict.hint is None) if hint is None else (hint in (verdict.hint or ""))


def test_another_plain_signature_is_no_matter_of_the_prefix() -> None:
    headers = {**signed(), "X-Webhook-Signature": "ab" * 32}
    assert check(BODY, headers, [SECRET.removeprefix("whsec_")]).hint is None


class OneDelivery:
    """A receiver that has got one, of this body."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __call__(self, port: int) -> OneDelivery:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:1{path}"

    def wait_for(self, _count: int, _seconds: float) -> list[Received]:
        return [Received("POST", "/ok", signed(self._body), self._body, 0.0, 1, 1)]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"job_id": "cad_1", "status": "failed"}, "x.y  cad_1  failed"),
        ({"job_id": None, "delivery_id": "dlv_1", "endpoint_id": "ep_1"}, "x.y  ep_1"),
        ({"endpoint_id": "ep_1"}, "x.y  ep_1"),
        ({}, "x.y"),
        ("none", "x.y"),
    ],
)
def test_what_is_heard_is_named_by_what_it_is_about(
    tempa: Terminal, monkeypatch: pytest.MonkeyPatch, data: object, line: str
) -> None:
    body = json.dumps({"type": "x.y", "id": "evt_1", "data": data}).encode()
    monkeypatch.setattr("tempa.testing.receiver.Receiver", OneDelivery(body))

    heard = tempa.show("webhooks", "listen", "--secret", SECRET, "--count", "1").stdout

    assert heard.splitlines()[0] == line


class TestTheCommand:
    @pytest.fixture
    def body(self, tmp_path: Path) -> str:
        (tmp_path / "body.json").write_bytes(BODY)
        return str(tmp_path / "body.json")

    def options(self, headers: dict[str, str]) -> list[str]:
        return [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]

    def test_it_verifies(self, tempa: Terminal, body: str) -> None:
        result = tempa.show("webhooks", "verify", body, "--secret", SECRET, *self.options(signed()))

        assert result.exit_code == 0
        assert result.stdout == "verifies: evt_1; X-Webhook-Signature matches\n"

    def test_it_does_not_verify(self, tempa: Terminal, body: str) -> None:
        result = tempa.run("webhooks", "verify", body, "--secret", OTHER, *self.options(signed()))

        assert result.exit_code == 1
        document = json.loads(result.stdout)
        assert (document["verifies"], document["reason"], document["hex_matches"]) == (
            False,
            "no_match",
            False,
        )

    @pytest.mark.parametrize("form", ["json", "lines"])
    def test_headers_come_from_a_file_in_either_form(
        self, tempa: Terminal, body: str, tmp_path: Path, form: str
    ) -> None:
        headers = signed(age_seconds=10**6)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        (tmp_path / "headers").write_text(json.dumps(headers) if form == "json" else lines)

        result = tempa.run(
            *("webhooks", "verify", body, "--headers", str(tmp_path / "headers")),
            *("--secret", SECRET, "--tolerance", "inf"),
        )

        assert result.exit_code == 0

    def test_the_body_comes_from_stdin_as_it_is(self, tempa: Terminal) -> None:
        result = tempa.run("webhooks", "verify", "-", "--secret", SECRET, *self.options(signed()), stdin=BODY)

        assert result.exit_code == 0

    def test_the_local_servers_secret_is_used(
        self, tempa: Terminal, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "tempa").mkdir()
        ready = {"url": "http://127.0.0.1:1", "webhook_secret": SECRET, "pid": os.getpid()}
        (tmp_path / "tempa/ready.json").write_text(json.dumps(ready))
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

        assert tempa.run("webhooks", "verify", body, *self.options(signed())).exit_code == 0

    def test_without_any_secret_it_says_where_one_goes(
        self, tempa: Terminal, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

        result = tempa.run("webhooks", "verify", body)

        assert result.exit_code == 2
        assert "TEMPA_WEBHOOK_SECRET" in result.stderr

    def test_a_header_without_a_colon_is_told(self, tempa: Terminal, body: str) -> None:
        result = tempa.run("webhooks", "verify", body, "--secret", SECRET, "-H", "webhook-id evt_1")

        assert result.exit_code == 2
        assert "'name: value'" in result.stderr

    @pytest.mark.parametrize("way", ["show", "run"])
    def test_a_computed_signature_is_explained(self, tempa: Terminal, body: str, way: str) -> None:
        run = getattr(tempa, way)
        right = hex_signature(SECRET, BODY)
        wrong = hex_signature(SECRET.removeprefix("whsec_"), BODY)

        good = run("webhooks", "verify", body, "--secret", SECRET, "--computed", right)
        bad = run("webhooks", "verify", body, "--secret", SECRET, "--computed", wrong)

        assert (good.exit_code, bad.exit_code) == (0, 1)
        assert "This is right, for X-Webhook-Signature." in good.stdout
        assert "here whsec_ was taken off" in bad.stdout
        assert way == "show" or json.loads(bad.stdout)["right"] is False
