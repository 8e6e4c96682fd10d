"""`tempa jobs explain`: why a job is where it is, and the next command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.cli.explain import explain
from tempa.core.errors import CODES
from tempa.jobs.wire import JobView

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import FakeServer, Terminal

ENGINES = [{"name": "opencascade-brep", "lane": "cpu"}]


@pytest.fixture
def told(job_view: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    def tell(status: str, engines: list[dict[str, Any]] | None = None, **fields: Any) -> str:
        job = JobView.model_validate(job_view(status, **fields))
        return "\n".join(explain(job, ENGINES if engines is None else engines))

    return tell


@pytest.mark.parametrize(
    ("position", "words"),
    [(0, "It is next in the queue"), (1, "One job is ahead of it"), (7, "7 jobs are ahead of it")],
)
def test_a_queued_job_has_a_place_in_a_lane(told: Callable[..., str], position: int, words: str) -> None:
    text = told("queued", progress={"stage": "queued", "queue_position": position})

    assert f"{words} in the lane cpu" in text
    assert "tempa jobs cancel cad_1" in text


def test_a_queued_job_that_was_tried_says_so(told: Callable[..., str]) -> None:
    assert "2 attempts ended without a result; it is tried again." in told("queued", attempt=2)
    assert "ended without" not in told("queued", attempt=0)


def test_a_job_that_nobody_can_run_says_so(told: Callable[..., str]) -> None:
    text = told("queued", engines=[{"name": "relief-splat", "lane": "cpu"}])

    assert "No worker of this server offers opencascade-brep now" in text


@pytest.mark.parametrize("status", ["queued", "processing"])
def test_a_job_on_a_rented_instance_says_what_it_hangs_on(told: Callable[..., str], status: str) -> None:
    assert "bound to the GPU instance gpu_1: it fails with RENTAL_EXPIRED" in told(
        status, gpu_instance_id="gpu_1"
    )
    assert "RENTAL_EXPIRED" not in told(status)
    assert "bound to" not in told("completed", gpu_instance_id="gpu_1")


def test_a_running_job_has_a_stage(told: Callable[..., str]) -> None:
    text = told("processing", attempt=2, progress={"stage": "exporting", "fraction": 0.75})

    assert "Attempt 2 of it runs since" in text
    assert "exporting, 75% done." in text


@pytest.mark.parametrize("code", CODES)
def test_a_failure_has_its_meaning_and_its_hint(told: Callable[..., str], code: str) -> None:
    error = {"code": code, "message": "Said by the server.", "retryable": False, "detail": {"limit": 5}}

    text = told("failed", error=error)

    assert f"{code}: {CODES[code].meaning}" in text
    assert "Said by the server." in text
    assert (CODES[code].hint or "") in text
    assert "limit: 5" in text
    assert "change the request" in text


def test_the_servers_hint_stands_before_the_tables(told: Callable[..., str]) -> None:
    error = {"code": "FILLET_FAILED", "message": "No.", "retryable": False, "hint": "At most 2 mm here."}

    text = told("failed", error=error)

    assert "At most 2 mm here." in text
    assert str(CODES["FILLET_FAILED"].hint) not in text


def test_a_failure_that_may_pass_names_the_command(told: Callable[..., str]) -> None:
    error = {"code": "FROM_THE_FUTURE", "message": "New.", "retryable": True}

    text = told("failed", error=error)

    assert "FROM_THE_FUTURE: New." in text
    assert "tempa jobs retry cad_1" in text


def test_a_completed_job_says_what_it_took(told: Callable[..., str]) -> None:
    assert "12 ms in the kernel, in one attempt." in told("completed")
    assert "taken from the cache" in told("completed", cached=True)


def test_a_canceled_job_can_be_asked_again(told: Callable[..., str]) -> None:
    assert "tempa jobs retry cad_1" in told("canceled")


LETTER = {
    "delivery_id": "dlv_1",
    "event_id": "evt_1",
    "type": "cad_generation.completed",
    "job_id": "cad_1",
    "endpoint_id": "ep_1",
    "url": "https://shop.example/hook",
    "status": "dead",
    "attempt_count": 6,
    "reason": "exhausted",
    "what_next": "Re-drive it.",
    "created_at": "2026-01-01T00:00:00Z",
    "next_attempt_at": None,
    "finished_at": "2026-01-01T00:05:00Z",
}


def test_a_job_whose_webhook_died_says_so_and_names_the_command(
    server: FakeServer, tempa: Terminal, job_view: Callable[..., dict[str, Any]]
) -> None:
    server.on_json("GET /v1/jobs/cad_1", job_view("completed"))
    server.on_json("GET /v1/webhooks/deliveries", {"items": [LETTER], "next_cursor": None})

    shown = tempa.show("jobs", "explain", "cad_1").stdout

    assert "to https://shop.example/hook could not be delivered: exhausted, after 6 attempts." in shown
    assert "tempa dead-letters show dlv_1" in shown
    asked = server.requests[-1].url.params
    assert (asked["job_id"], asked["status"]) == ("cad_1", "dead")


def test_a_key_that_may_not_look_at_webhooks_still_has_the_job_explained(
    server: FakeServer, tempa: Terminal, job_view: Callable[..., dict[str, Any]]
) -> None:
    server.on_json("GET /v1/jobs/cad_1", job_view("completed"))
    server.refuse("GET /v1/webhooks/deliveries", 403, "missing-scope", "No.")

    result = tempa.show("jobs", "explain", "cad_1")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "12 ms in the kernel" in result.stdout


def test_the_command_prints_it(
    server: FakeServer, tempa: Terminal, job_view: Callable[..., dict[str, Any]]
) -> None:
    server.on_json("GET /v1/jobs/cad_1", job_view("queued"))
    server.on_json("GET /v1/engines", {"items": ENGINES, "next_cursor": None})

    assert tempa.show("jobs", "explain", "cad_1").stdout.startswith("cad_1 is queued.\n")
    document = json.loads(tempa.show("jobs", "explain", "cad_1", "--json").stdout)
    assert document["status"] == "queued"
    assert len(document["explanation"]) >= 2
