"""Waiting at a terminal: stages on stderr while they last, and a way back after Ctrl-C."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import typer

from tempa.cli import connect, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import FakeServer

STAGES: list[dict[str, Any]] = [
    {"sequence": 1, "type": "job.queued"},
    {"sequence": 2, "type": "job.started"},
    {"sequence": 3, "type": "job.stage", "stage": "building"},
    {"sequence": 4, "type": "job.retrying", "code": "WORKER_LOST"},
    {"type": "progress", "stage": "exporting", "fraction": 0.5},
    {"sequence": 5, "type": "job.completed"},
]


def stream() -> httpx2.Response:
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in STAGES)
    return httpx2.Response(200, text=text, headers={"Content-Type": "text/event-stream"})


def test_what_events_mean_for_who_watches() -> None:
    assert [watch.stage_words(each["type"], each) for each in STAGES] == [
        "queued",
        "started",
        "building",
        "waiting for another attempt (WORKER_LOST)",
        "exporting",
        None,
    ]


def test_at_a_terminal_the_stages_are_shown_before_the_job_is_looked_at(
    server: FakeServer,
    job_view: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    server.on("GET /v1/jobs/cad_1/events", stream())
    waiting = {"stage": "queued", "queue_position": 3, "eta_seconds": 75.2, "eta_range_seconds": [60.4, 90.0]}
    server.on_json("GET /v1/jobs/cad_1", job_view("queued", progress=waiting), job_view("completed"))

    with connect.open_client() as tempa:
        assert watch.wait(tempa, "cad_1").status == "completed"

    asked = [request.url.path for request in server.requests]
    assert asked == ["/v1/jobs/cad_1", "/v1/jobs/cad_1/events", "/v1/jobs/cad_1"]
    told = capsys.readouterr()
    assert told.err.startswith(
        "3 jobs are ahead of it\nAbout 1 min 15 s left (by past jobs, 1 min 0 s to 1 min 30 s)\n"
    )
    assert told.out == ""  # stdout is for the result


@pytest.mark.parametrize(
    ("stays", "words"), [(True, "tempa jobs wait cad_1"), (False, "Stopped, and the job with it")]
)
def test_ctrl_c_tells_the_truth_about_the_job(
    server: FakeServer, capsys: pytest.CaptureFixture[str], stays: Any, words: str
) -> None:
    server.on("GET /v1/jobs/cad_1", KeyboardInterrupt())

    with connect.open_client() as tempa, pytest.raises(typer.Exit) as caught:
        watch.wait(tempa, "cad_1", stays=stays)

    assert caught.value.exit_code == 130
    assert words in capsys.readouterr().err
