"""A kernel may crash, hang, eat memory or be refused: its job says so with a code, the server goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.seeds import SEED_001
from tempa.testing.server import wait_for_end, wait_for_start
from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from tempa.testing.receiver import Receiver
    from tempa.testing.server import Fleet, Server
    from tests.wirings import Wiring


@pytest.fixture(scope="module")
def server(wiring: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server | Fleet]:
    environment = {
        "PYTHONPATH": PLUGINS,
        "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "1.0",
        "TEMPA_ENGINES__TRIAL__MEMORY_BYTES": str(256 << 20),
        **wiring.slots(2),
    }
    with wiring.server(tmp_path_factory.mktemp("tempa") / "data", environment) as running:
        yield running


def end_of(http: httpx2.Client, **parameters: Any) -> dict[str, Any]:
    answer = http.post("/v1/models/generate", json={"engine": "trial", "parameters": parameters})
    assert answer.status_code == 202, answer.text
    return wait_for_end(http, answer.json()["job_id"])


@pytest.mark.parametrize(
    ("do", "code", "attempts"),
    [
        ("hang", "KERNEL_TIMEOUT", 1),
        ("eat", "OUT_OF_MEMORY", 1),
        ("crash", "KERNEL_CRASHED", 2),
        ("break", "INTERNAL", 2),
    ],
)
def test_what_a_kernel_does_becomes_a_code(http: httpx2.Client, do: str, code: str, attempts: int) -> None:
    job = end_of(http, do=do)
    assert (job["status"], job["error"]["code"], job["attempt"]) == ("failed", code, attempts)
    assert job["result"] is None
    assert job["completed_at"]
    assert "secret" not in str(job)
    assert end_of(http, do="finish", n=do)["status"] == "completed"


def test_a_crash_is_tried_once_more_and_the_log_says_so(http: httpx2.Client) -> None:
    job = end_of(http, do="crash", n="log")
    text = http.get(f"/v1/jobs/{job['job_id']}/events").text
    kinds = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: job.")]
    told = [kind for kind in kinds if kind != "job.stage"]
    assert told == ["job.queued", "job.started", "job.retrying", "job.started", "job.failed"]


@pytest.mark.parametrize("code", ["FILLET_FAILED", "EMPTY_RESULT", "EXPORT_FAILED"])
def test_a_typed_failure_of_an_engine_reaches_the_client(http: httpx2.Client, code: str) -> None:
    job = end_of(http, do="raise", code=code)
    assert (job["error"]["code"], job["error"]["retryable"]) == (code, False)


def test_a_failed_job_is_announced_with_its_code(http: httpx2.Client, receiver: Receiver) -> None:
    body = {
        "engine": "trial",
        "parameters": {"do": "raise", "code": "FILLET_FAILED"},
        "webhook_url": receiver.url(),
    }
    http.post("/v1/models/generate", json=body)
    (got,) = receiver.wait_for(1, 30)
    assert b'"event":"cad_generation.failed"' in got.body
    assert b'"error_code":"FILLET_FAILED"' in got.body
    assert b'"retryable":false' in got.body


def test_a_failed_job_may_be_asked_again_without_a_key(http: httpx2.Client) -> None:
    first = end_of(http, do="raise", code="EMPTY_RESULT", n="again")
    second = end_of(http, do="raise", code="EMPTY_RESULT", n="again")
    assert first["job_id"] != second["job_id"]


def test_a_running_kernel_is_gone_after_a_cancel_and_the_job_stays_canceled(
    http: httpx2.Client, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    body = {"engine": "trial", "parameters": {"do": "wait", "path": str(pipe)}}
    job_id = http.post("/v1/models/generate", json=body).json()["job_id"]
    wait_for_start(http, job_id)
    answer = http.post(f"/v1/jobs/{job_id}/cancel").json()
    assert answer["outcome"] in {"canceled", "cancellation_requested"}
    assert wait_for_end(http, job_id)["status"] == "canceled"
    assert http.post(f"/v1/jobs/{job_id}/cancel").json()["outcome"] == "already_finished"
    with pytest.raises(OSError, match="No such device or address"):  # nobody has the pipe open any more
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)


def test_a_queued_job_is_canceled_at_once(http: httpx2.Client, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waiting = [
        http.post(
            "/v1/models/generate",
            json={"engine": "trial", "parameters": {"do": "wait", "path": str(pipe), "n": n}},
        ).json()["job_id"]
        for n in range(3)
    ]
    assert http.post(f"/v1/jobs/{waiting[2]}/cancel").json()["outcome"] == "canceled"
    for job_id in waiting[:2]:
        http.post(f"/v1/jobs/{job_id}/cancel")
        assert wait_for_end(http, job_id)["status"] == "canceled"


def test_a_deadline_is_kept_while_the_kernel_runs(http: httpx2.Client) -> None:
    body = {"engine": "trial", "parameters": {"do": "hang", "n": "deadline"}, "deadline_seconds": 0.4}
    job = wait_for_end(http, http.post("/v1/models/generate", json=body).json()["job_id"])
    assert (job["status"], job["error"]["code"], job["error"]["retryable"]) == (
        "failed",
        "DEADLINE_EXCEEDED",
        True,
    )


def test_a_dead_letter_keeps_its_history_and_is_delivered_when_re_driven(
    http: httpx2.Client, receiver: Receiver
) -> None:
    receiver.script("/hook", "/status/422", "/ok")
    job = wait_for_end(
        http,
        http.post(
            "/v1/models/generate",
            json={**SEED_001, "webhook_url": receiver.url("/hook"), "tags": {"s": "dead"}},
        ).json()["job_id"],
    )
    receiver.wait_for(1, 30)
    letter = _delivery_in(http, job["job_id"], "dead")
    assert letter["reason"] == "refused"
    detail = http.get(f"/v1/webhooks/deliveries/{letter['delivery_id']}").json()
    assert [attempt["http_status"] for attempt in detail["attempts"]] == [422]
    answer = http.post("/v1/webhooks/dead-letters/redrive", json={"delivery_ids": [letter["delivery_id"]]})
    assert answer.json() == {"matched": 1, "redriven": 1}
    first, second = receiver.wait_for(2, 30)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert _delivery_in(http, job["job_id"], "delivered")["attempt_count"] == 2


def _delivery_in(http: httpx2.Client, job_id: str, status: str) -> dict[str, Any]:
    """The job's delivery once it stands at `status`; the feed's long-poll paces the looking."""
    seen = ""
    for _ in range(100):
        (delivery,) = http.get("/v1/webhooks/deliveries", params={"job_id": job_id}).json()["items"]
        if (seen := delivery["status"]) == status:
            return dict(delivery)
    raise AssertionError(f"the delivery stands at {seen}")
