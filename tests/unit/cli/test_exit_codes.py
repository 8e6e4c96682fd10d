"""Every exit code, provoked; and every expected error in words, never as a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import FakeServer, Terminal

FAILURE = {
    "code": "KERNEL_CRASHED",
    "message": "The kernel died of signal 11.",
    "retryable": True,
    "hint": "Try a simpler part.",
    "detail": {"signal": 11, "kernel": "BRepFilletAPI"},
}


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    file = tmp_path / "request.json"
    file.write_text('{"parameters": {"outer_diameter": 1}}')
    return str(file)


def test_0_all_went_well(server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]) -> None:
    server.on_json("GET /v1/jobs/cad_1", job_view("completed"))

    assert tempa.run("jobs", "wait", "cad_1").exit_code == 0


class TestUsage:
    def test_2_a_command_that_is_not_there(self, tempa: Terminal) -> None:
        assert tempa.run("no-such-command").exit_code == 2

    def test_2_a_file_that_is_not_there(self, server: FakeServer, tempa: Terminal) -> None:
        result = tempa.run("submit", "missing.json")

        assert result.exit_code == 2
        assert "missing.json cannot be read" in result.stderr.replace("\n", " ")

    @pytest.mark.parametrize("command", [["submit"], ["run", "cad"]], ids=" ".join)
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"{", "line 1, column 2"),
            (b"[]", "must hold a JSON object"),
            (b'{"tags": "\xff"}', "invalid UTF-8 at byte 10"),
            (b'{"priority": NaN}', "NaN is not a JSON number"),
            (b'{"priority": -Infinity}', "-Infinity is not a JSON number"),
            (b'{"parameters": {"length": 1e999}}', "/parameters/length: this number is too large"),
            (b'{"tree": {"nodes": [1, -1e999]}}', "/tree/nodes/1: this number is too large"),
            (b'{"parameters": ' + b"9" * 400 + b"}", "/parameters: this number is too large"),
            (b'{"tree": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 64 levels"),
            (b'{"engine": "a", "engine": "b"}', "'engine' occurs twice"),
        ],
        ids=["cut", "list", "latin", "nan", "infinity", "huge", "huge-below", "digits", "deep", "twice"],
    )
    def test_2_a_file_that_is_no_request(
        self,
        server: FakeServer,
        tempa: Terminal,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        command: list[str],
        body: bytes,
        words: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "r.json").write_bytes(body)

        result = tempa.run(*command, "r.json")

        assert result.exit_code == 2
        assert words in result.stderr
        assert "r.json" in result.stderr
        assert server.requests == []

    def test_2_what_stdin_holds_is_read_as_strictly(self, server: FakeServer, tempa: Terminal) -> None:
        result = tempa.run("submit", "-", stdin=b'{"tags": "\xff"}')

        assert result.exit_code == 2
        assert "invalid UTF-8" in result.stderr

    @pytest.mark.parametrize("command", ["submit", "run cad", "jobs retry"])
    @pytest.mark.parametrize("key", ["", " ", "x" * 256, "käse", "a\nb", "tab\there"])
    def test_2_a_key_that_no_header_can_carry(
        self, server: FakeServer, tempa: Terminal, request_file: str, command: str, key: str
    ) -> None:
        result = tempa.run(*command.split(), request_file, "--key", key)

        assert result.exit_code == 2
        assert "--key must be 1 to 255 printable ASCII characters" in result.stderr
        assert server.requests == []

    @pytest.mark.parametrize("place", ["request.json", "request.json/below"])
    def test_2_an_output_folder_that_cannot_be_one_is_told_before_anything_is_asked_for(
        self, server: FakeServer, tempa: Terminal, request_file: str, tmp_path: Path, place: str
    ) -> None:
        result = tempa.run("run", "cad", request_file, "-o", str(tmp_path / place))

        assert result.exit_code == 2
        assert f"{tmp_path / place} cannot take the files" in result.stderr
        assert server.requests == []

    def test_2_a_request_that_is_refused_lists_every_fault(
        self, server: FakeServer, tempa: Terminal, request_file: str
    ) -> None:
        faults = [
            {"pointer": "/parameters/fillet_radius", "message": "Must be at most 37.749.", "limit": 37.749},
            {"pointer": "", "message": "Name a template or a tree, not both.", "limit": None},
        ]
        server.refuse(
            "POST /v1/models/generate", 422, "invalid-request", "The request is not valid.", errors=faults
        )

        result = tempa.run("submit", request_file)

        assert result.exit_code == 2
        assert json.loads(result.stdout) == {
            "type": "urn:tempa:problem:invalid-request",
            "title": "The request is not valid",
            "status": 422,
            "detail": "The request is not valid.",
            "code": "INVALID_REQUEST",
            "errors": faults,
        }
        assert result.stderr.splitlines() == [
            "The request is not valid.",
            "  /parameters/fillet_radius: Must be at most 37.749.",
            "  (the request): Name a template or a tree, not both.",
        ]

    def test_2_one_fault_is_told_once(self, server: FakeServer, tempa: Terminal, request_file: str) -> None:
        fault = {"pointer": "/engine", "message": "It does not run here.", "limit": None}
        server.refuse(
            "POST /v1/models/generate", 422, "engine-unavailable", "It does not run here.", errors=[fault]
        )

        assert tempa.run("submit", request_file).stderr == "/engine: It does not run here.\n"

    def test_2_an_address_that_is_none(self, tempa: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEMPA_URL", "localhost:8787")

        result = tempa.run("jobs", "ls")

        assert result.exit_code == 2
        assert "must begin with http://" in result.stderr

    def test_2_settings_that_cannot_be_used(
        self, tempa: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("TEMPA_SERVER__PORT", "many")

        result = tempa.run("up", "--data", str(tmp_path))

        assert result.exit_code == 2
        assert "server.port" in result.stderr
        assert "TEMPA_SERVER__PORT" in result.stderr


class TestTheJob:
    def test_3_it_failed(self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]) -> None:
        server.on_json("GET /v1/jobs/cad_1", job_view("failed", error=FAILURE))

        result = tempa.run("jobs", "wait", "cad_1")

        assert result.exit_code == 3
        assert json.loads(result.stdout)["error"] == FAILURE
        assert result.stderr.splitlines() == [
            "cad_1 failed with KERNEL_CRASHED: The kernel died of signal 11.",
            "Try a simpler part.",
            "Detail: signal = 11",
            "It may be asked again: tempa jobs retry cad_1",
        ]

    def test_4_it_was_canceled(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        server.on_json("GET /v1/jobs/cad_1", job_view("canceled"))

        result = tempa.run("jobs", "wait", "cad_1")

        assert (result.exit_code, result.stderr) == (4, "cad_1 was canceled.\n")
        assert json.loads(result.stdout)["status"] == "canceled"

    @pytest.mark.parametrize("command", [["submit", "--wait"], ["run", "cad"]], ids=" ".join)
    @pytest.mark.parametrize(("status", "code"), [("failed", 3), ("canceled", 4)])
    def test_the_same_for_commands_that_submit_it(
        self,
        server: FakeServer,
        tempa: Terminal,
        request_file: str,
        job_view: Callable[..., Any],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        command: list[str],
        status: str,
        code: int,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        server.on_json("POST /v1/models/generate", job_view("queued"), status=202)
        server.on_json("GET /v1/jobs/cad_1", job_view(status, error=FAILURE if code == 3 else None))

        result = tempa.run(*command, request_file)

        assert result.exit_code == code
        assert json.loads(result.stdout)["status"] == status

    def test_a_person_gets_words_alone_unless_json_is_asked_for(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        server.on_json("GET /v1/jobs/cad_1", job_view("failed", error=FAILURE))

        assert tempa.show("jobs", "wait", "cad_1").stdout == ""
        assert json.loads(tempa.show("jobs", "wait", "cad_1", "--json").stdout)["job_id"] == "cad_1"

    def test_failed_checks_are_told_in_words(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        failed = [
            {"check": "volume_max", "asked": 100.0, "found": 200.125},
            {"check": "watertight", "asked": True, "found": False},
        ]
        error = {**FAILURE, "code": "CHECK_FAILED", "retryable": False, "detail": {"failed": failed}}
        server.on_json("GET /v1/jobs/cad_1", job_view("failed", error=error))
        server.on_json("GET /v1/webhooks/deliveries", {"items": [], "next_cursor": None})

        told = "failed = check volume_max, asked 100, found 200.125; check watertight, asked yes, found no"
        assert told in tempa.show("jobs", "wait", "cad_1").stderr
        assert told.replace(" = ", ": ") in tempa.show("jobs", "explain", "cad_1").stdout

    def test_1_the_wait_was_too_short(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        server.on_json("GET /v1/jobs/cad_1", job_view("processing"))

        result = tempa.run("jobs", "wait", "cad_1", "--timeout", "0")

        assert result.exit_code == 1
        assert "tempa jobs wait cad_1" in result.stderr

    def test_1_it_is_not_there(self, server: FakeServer, tempa: Terminal) -> None:
        server.refuse("GET /v1/jobs/cad_1", 404, "not-found", "There is no job cad_1 in this account.")

        result = tempa.run("jobs", "get", "cad_1")

        assert json.loads(result.stdout)["type"] == "urn:tempa:problem:not-found"
        assert (result.exit_code, result.stderr) == (1, "There is no job cad_1 in this account.\n")

    def test_130_ctrl_c_leaves_it_and_says_how_to_come_back(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        queued = httpx2.Response(200, json=job_view("queued"))
        server.on("GET /v1/jobs/cad_1", queued, KeyboardInterrupt())

        result = tempa.run("jobs", "wait", "cad_1")

        assert result.exit_code == 130
        assert "tempa jobs wait cad_1" in result.stderr
        assert [request.method for request in server.requests] == ["GET", "GET"]  # nothing was canceled


class TestTheServer:
    def test_5_nobody_answers(self, server: FakeServer, tempa: Terminal) -> None:
        server.on("GET /v1/jobs", httpx2.ConnectError("[Errno 111] Connection refused"))

        result = tempa.run("jobs", "ls")

        assert result.exit_code == 5
        assert "No connection to tempa.test" in result.stderr
        assert json.loads(result.stdout)["code"] == "NOT_REACHABLE"

    def test_5_a_server_that_was_named_is_not_replaced_by_one_of_our_own(
        self, server: FakeServer, tempa: Terminal, request_file: str, tmp_path: Path
    ) -> None:
        server.on("POST /v1/models/generate", httpx2.ConnectError("[Errno 111] Connection refused"))

        result = tempa.run("run", "cad", request_file, "-o", str(tmp_path / "out"))

        assert result.exit_code == 5
        assert "one is started" not in result.stderr

    def test_5_it_is_busy_for_too_long(self, server: FakeServer, tempa: Terminal) -> None:
        server.refuse("GET /v1/jobs", 503, "store-unavailable", "The store cannot be written.")

        assert tempa.run("jobs", "ls").exit_code == 5

    def test_5_none_is_known(self, tempa: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.delenv("TEMPA_URL", raising=False)

        result = tempa.run("jobs", "ls")

        assert result.exit_code == 5
        assert "tempa up" in result.stderr

    @pytest.mark.parametrize(("status", "slug"), [(401, "revoked-key"), (403, "missing-scope")])
    def test_6_it_does_not_let_us(self, server: FakeServer, tempa: Terminal, status: int, slug: str) -> None:
        server.refuse("GET /v1/jobs", status, slug, "No.")

        result = tempa.run("jobs", "ls")

        assert result.exit_code == 6
        assert slug in result.stderr
        assert "TEMPA_API_KEY" in result.stderr


def test_a_fault_of_our_own_is_not_dressed_up(server: FakeServer, tempa: Terminal) -> None:
    server.on("GET /v1/jobs", RuntimeError("a bug"))

    assert isinstance(tempa.run("jobs", "ls").exception, RuntimeError)
