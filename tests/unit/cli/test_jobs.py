"""`tempa submit`, `tempa jobs`, `tempa run`: JSON for pipes, words for people."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tempa.cli import connect, run
from tempa.client import NotReachable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tempa.client import Client
    from tests.unit.cli.conftest import FakeServer, Terminal

STEP = b"ISO-10303-21;\n"
TICKET = {"job_id": "cad_1", "status": "queued", "created_at": "2026-01-01T00:00:00.000Z"}


def completed(view: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    artifact = {
        "name": "model.step",
        "role": "step",
        "file_format": "step",
        "media_type": "model/step",
        "file_size_bytes": len(STEP),
        "sha256": hashlib.sha256(STEP).hexdigest(),
        "download_url": "https://bucket.test/model.step",
        "expires_at": "2026-01-01T01:00:00Z",
    }
    measured = {
        "volume": 2801746.16196747,
        "solids": 1,
        "bounding_box": [[-60.25, -60.25, 0], [60.25, 60.25, 300]],
    }
    return view("completed", result={**artifact, "artifacts": [artifact], "measurements": measured})


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    file = tmp_path / "request.json"
    file.write_text('{"parameters": {"outer_diameter": 120.5}}')
    return str(file)


class TestSubmit:
    def test_a_pipe_gets_the_ticket_as_json(
        self, server: FakeServer, tempa: Terminal, request_file: str
    ) -> None:
        server.on_json("POST /v1/models/generate", TICKET, status=202)

        result = tempa.run("submit", request_file, "--key", "order-17")

        assert json.loads(result.stdout) == {**TICKET, "replayed": False}
        assert server.body() == {"parameters": {"outer_diameter": 120.5}}
        assert server.requests[0].headers["Idempotency-Key"] == "order-17"
        assert server.requests[0].headers["Authorization"] == "Bearer a-key"

    def test_a_person_gets_the_ticket_and_the_next_command(
        self, server: FakeServer, tempa: Terminal, request_file: str
    ) -> None:
        replayed = httpx2.Response(200, json=TICKET, headers={"Idempotency-Replayed": "true"})
        server.on("POST /v1/models/generate", replayed)

        result = tempa.show("submit", request_file)

        assert result.stdout == "cad_1 queued (known already: nothing new was enqueued)\n"
        assert "tempa jobs wait cad_1" in result.stderr

    def test_a_request_comes_from_stdin_too(self, server: FakeServer, tempa: Terminal) -> None:
        server.on_json("POST /v1/convert", TICKET, status=202)

        result = tempa.run("submit", "-", "--path", "/v1/convert", stdin='{"file_url": "https://x.test/a"}')

        assert result.exit_code == 0
        assert server.body() == {"file_url": "https://x.test/a"}

    def test_with_wait_the_ticket_is_told_before_and_the_job_after(
        self, server: FakeServer, tempa: Terminal, request_file: str, job_view: Callable[..., Any]
    ) -> None:
        server.on_json("POST /v1/models/generate", TICKET, status=202)
        server.on_json("GET /v1/jobs/cad_1", job_view("queued"), completed(job_view))

        result = tempa.run("submit", request_file, "--wait")

        assert json.loads(result.stdout)["status"] == "completed"
        assert result.stderr == "cad_1 queued\n"


class TestRunCad:
    def test_files_and_measurements(
        self,
        server: FakeServer,
        tempa: Terminal,
        request_file: str,
        tmp_path: Path,
        job_view: Callable[..., Any],
    ) -> None:
        server.on_json("POST /v1/models/generate", TICKET, status=202)
        server.on_json("GET /v1/jobs/cad_1", completed(job_view))
        server.on("GET /model.step", httpx2.Response(200, content=STEP))

        result = tempa.show("run", "cad", request_file, "-o", str(tmp_path / "out"))

        assert result.exit_code == 0
        assert (tmp_path / "out/model.step").read_bytes() == STEP
        assert "volume: 2801746.16 mm3" in result.stdout
        assert "bounding box: [[-60.25, -60.25, 0], [60.25, 60.25, 300]] mm" in result.stdout
        assert "out/model.step" in result.stdout

    def test_json_names_the_files(
        self,
        server: FakeServer,
        tempa: Terminal,
        request_file: str,
        tmp_path: Path,
        job_view: Callable[..., Any],
    ) -> None:
        server.on_json("POST /v1/models/generate", TICKET, status=202)
        server.on_json("GET /v1/jobs/cad_1", completed(job_view))
        server.on("GET /model.step", httpx2.Response(200, content=STEP))

        document = json.loads(tempa.run("run", "cad", request_file, "-o", str(tmp_path / "out")).stdout)

        assert document["files"] == [str(tmp_path / "out/model.step")]
        assert document["result"]["measurements"]["volume"] == 2801746.16196747


class TestRunCadWithAServerOfItsOwn:
    """What leads back to a job says nothing once its server and its store are gone."""

    @pytest.fixture
    def passing(self, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
        opened = connect.open_client

        def nobody() -> Client:
            raise NotReachable(0, "not-reachable", "No server is known here.")

        monkeypatch.setattr(connect, "open_client", nobody)
        monkeypatch.setattr(run, "_own_client", lambda _held: opened())
        server.on_json("POST /v1/models/generate", TICKET, status=202)
        server.on("GET /model.step", httpx2.Response(200, content=STEP))
        return server

    def test_a_person_is_told_where_the_files_lie(
        self,
        passing: FakeServer,
        tempa: Terminal,
        request_file: str,
        tmp_path: Path,
        job_view: Callable[..., Any],
    ) -> None:
        passing.on_json("GET /v1/jobs/cad_1", completed(job_view))

        shown = tempa.show("run", "cad", request_file, "-o", str(tmp_path / "out")).stdout

        assert str(tmp_path / "out/model.step") in shown
        assert "kept until" not in shown

    def test_a_program_gets_no_links(
        self,
        passing: FakeServer,
        tempa: Terminal,
        request_file: str,
        tmp_path: Path,
        job_view: Callable[..., Any],
    ) -> None:
        passing.on_json("GET /v1/jobs/cad_1", completed(job_view))

        text = tempa.run("run", "cad", request_file, "-o", str(tmp_path / "out")).stdout

        assert not [name for name in ("download_url", "expires_at", "retained_until") if name in text]
        assert json.loads(text)["files"] == [str(tmp_path / "out/model.step")]
        assert json.loads(text)["result"]["artifacts"][0]["sha256"] == hashlib.sha256(STEP).hexdigest()

    @pytest.mark.parametrize(("status", "code"), [("failed", 3), ("canceled", 4)])
    def test_an_ending_without_a_file_names_no_way_back_either(
        self,
        passing: FakeServer,
        tempa: Terminal,
        request_file: str,
        tmp_path: Path,
        job_view: Callable[..., Any],
        status: str,
        code: int,
    ) -> None:
        error = {"code": "KERNEL_CRASHED", "message": "It died.", "retryable": True}
        passing.on_json("GET /v1/jobs/cad_1", job_view(status, error=error if code == 3 else None))

        result = tempa.run("run", "cad", request_file, "-o", str(tmp_path / "out"))

        assert result.exit_code == code
        assert json.loads(result.stdout)["status"] == status
        assert "retained_until" not in result.stdout
        assert "tempa jobs retry" not in result.stderr


class TestJobs:
    def test_a_list_for_people_shows_what_failed(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        error = {"code": "FILLET_FAILED", "message": "No.", "retryable": False}
        jobs = [job_view("failed", error=error, tags={"[red]": "x"}), job_view("queued", job_id="cad_2")]
        server.on_json("GET /v1/jobs", {"items": jobs, "next_cursor": None})

        lines = tempa.show("jobs", "ls").stdout.splitlines()

        assert any("cad_1" in line and "failed" in line and "FILLET_FAILED" in line for line in lines)
        assert any("cad_2" in line and "queued" in line for line in lines)

    def test_a_list_asks_for_what_was_said(self, server: FakeServer, tempa: Terminal) -> None:
        server.on_json("GET /v1/jobs", {"items": [], "next_cursor": None})

        result = tempa.run(
            *("jobs", "ls", "--status", "failed", "--tag", "order:17", "--code", "KERNEL_TIMEOUT"),
            *("--engine", "e", "--since", "2026-01-01T00:00:00Z", "--limit", "7"),
        )

        assert json.loads(result.stdout) == {"items": []}
        assert dict(server.requests[0].url.params) == {
            "status": "failed",
            "tag": "order:17",
            "code": "KERNEL_TIMEOUT",
            "engine": "e",
            "since": "2026-01-01T00:00:00Z",
            "limit": "7",
        }

    def test_an_empty_list_says_so(self, server: FakeServer, tempa: Terminal) -> None:
        server.on_json("GET /v1/jobs", {"items": [], "next_cursor": None})

        assert tempa.show("jobs", "ls").stdout == "There are no such jobs.\n"

    def test_json_may_be_asked_for_at_a_terminal(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        server.on_json("GET /v1/jobs/cad_1", job_view("queued"))

        assert json.loads(tempa.show("jobs", "get", "cad_1", "--json").stdout)["job_id"] == "cad_1"

    def test_one_job_in_words(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        left = {"eta_seconds": 20.0, "eta_range_seconds": [15.0, 40.0]}
        progress = {"stage": "meshing", "fraction": 0.4, **left}
        server.on_json("GET /v1/jobs/cad_1", job_view("processing", progress=progress, tags={"order": "17"}))

        shown = tempa.show("jobs", "get", "cad_1").stdout

        assert shown.startswith("cad_1  processing\n")
        assert "\n  meshing 40%, attempt 1\n  About 20 s left (by past jobs, 15 s to 40 s)\n" in shown
        assert "tags: order=17" in shown

    def test_a_job_that_waits_has_its_place_and_its_time_in_words(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        progress = {
            "stage": "queued",
            "queue_position": 2,
            "eta_seconds": 400.0,
            "eta_range_seconds": [90, 4000],
        }
        server.on_json("GET /v1/jobs/cad_1", job_view("queued", progress=progress))

        shown = tempa.show("jobs", "get", "cad_1").stdout.splitlines()

        assert shown[2:] == [
            "  2 jobs are ahead of it",
            "  About 6 min 40 s left (by past jobs, 1 min 30 s to 1 h 7 min)",
        ]

    def test_json_is_what_the_server_said(
        self, server: FakeServer, tempa: Terminal, job_view: Callable[..., Any]
    ) -> None:
        said = job_view("completed", created_at="2026-01-01T00:00:00.120Z", deadline_at=None)
        ended = {"started_at": "2026-01-01T00:00:00.001Z", "completed_at": "2026-01-01T00:00:02.000Z"}
        said |= {**ended, "retained_until": "2026-01-31T00:00:00.120Z"}
        server.on_json("GET /v1/jobs/cad_1", said)
        server.on_json("GET /v1/jobs", {"items": [said], "next_cursor": None})

        assert json.loads(tempa.run("jobs", "get", "cad_1").stdout) == said
        assert json.loads(tempa.run("jobs", "wait", "cad_1").stdout) == said
        assert json.loads(tempa.run("jobs", "ls").stdout) == {"items": [said]}

    @pytest.mark.parametrize(
        ("outcome", "status"),
        [("canceled", "canceled"), ("cancellation_requested", "processing"), ("already_finished", "failed")],
    )
    def test_cancel_says_what_came_of_it(
        self, server: FakeServer, tempa: Terminal, outcome: str, status: str
    ) -> None:
        server.on_json(
            "POST /v1/jobs/cad_1/cancel", {"job_id": "cad_1", "status": status, "outcome": outcome}
        )

        result = tempa.show("jobs", "cancel", "cad_1")

        assert result.stdout == f"cad_1: {outcome.replace('_', ' ')} ({status})\n"

    def test_retry_gives_the_new_job(self, server: FakeServer, tempa: Terminal) -> None:
        server.on_json("POST /v1/jobs/cad_0/retry", TICKET, status=202)

        assert json.loads(tempa.run("jobs", "retry", "cad_0").stdout)["job_id"] == "cad_1"

    def test_rm(self, server: FakeServer, tempa: Terminal) -> None:
        server.on("DELETE /v1/jobs/cad_1", httpx2.Response(204))

        assert json.loads(tempa.run("jobs", "rm", "cad_1").stdout) == {"job_id": "cad_1", "removed": True}


class TestEvents:
    def stream(self, server: FakeServer) -> None:
        events = [
            {"sequence": 1, "type": "job.queued", "at": "2026-01-01T00:00:00Z", "job_id": "cad_1"},
            {
                "sequence": 2,
                "type": "job.stage",
                "at": "2026-01-01T00:00:01Z",
                "job_id": "cad_1",
                "stage": "meshing",
            },
            {"sequence": 3, "type": "job.completed", "at": "2026-01-01T00:00:02Z", "job_id": "cad_1"},
        ]
        text = "".join(
            f"event: {each['type']}\nid: {each['sequence']}\ndata: {json.dumps(each)}\n\n" for each in events
        )
        progress = 'event: progress\ndata: {"job_id": "cad_1", "fraction": 0.5}\n\n'
        server.on(
            "GET /v1/jobs/cad_1/events",
            httpx2.Response(200, text=progress + text, headers={"Content-Type": "text/event-stream"}),
        )

    def test_a_pipe_gets_one_event_a_line(self, server: FakeServer, tempa: Terminal) -> None:
        self.stream(server)

        lines = [json.loads(line) for line in tempa.run("jobs", "events", "cad_1").stdout.splitlines()]

        assert [line.get("sequence") for line in lines] == [None, 1, 2, 3]
        assert lines[0] == {"type": "progress", "job_id": "cad_1", "fraction": 0.5}

    def test_a_person_gets_them_in_columns(self, server: FakeServer, tempa: Terminal) -> None:
        self.stream(server)

        lines = tempa.show("jobs", "events", "cad_1").stdout.splitlines()

        assert lines[2].split() == ["2", "2026-01-01T00:00:01Z", "job.stage", "stage=meshing"]

    def test_what_is_true_or_false_reads_yes_or_no(self, server: FakeServer, tempa: Terminal) -> None:
        event = {"sequence": 1, "type": "job.failed", "job_id": "cad_1", "retryable": False}
        text = f"event: job.failed\nid: 1\ndata: {json.dumps(event)}\n\n"
        headers = {"Content-Type": "text/event-stream"}
        server.on("GET /v1/jobs/cad_1/events", httpx2.Response(200, text=text, headers=headers))

        assert "retryable=no" in tempa.show("jobs", "events", "cad_1").stdout

    def test_after_leaves_out_what_was_seen(self, server: FakeServer, tempa: Terminal) -> None:
        self.stream(server)

        lines = tempa.run("jobs", "events", "cad_1", "--after", "2").stdout.splitlines()

        assert json.loads(lines[-1])["sequence"] == 3
        assert len(lines) == 2
        assert server.requests[0].headers["Last-Event-ID"] == "2"
