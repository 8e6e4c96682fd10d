"""kill -9 at any moment: every ticket that was given still ends, once, and is told once."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.seeds import SEED_001
from tempa.testing.server import Server, wait_for_end, wait_for_start

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.receiver import Receiver

JOBS = 8
DELIVERED_SECONDS = 45  # below a delivery's lease of 60 s here


def heavy(number: int) -> dict[str, Any]:
    """A part that keeps the kernel busy for a while: many holes and a fine mesh."""
    parameters = {
        "outer_diameter": 400.0 + number,
        "inner_diameter": 20.0,
        "length": 50.0,
        "hole_pattern": {"count": 90, "pitch_diameter": 200.0, "hole_diameter": 4.0},
    }
    return {"parameters": parameters, "export_formats": ["step", "stl"], "tolerance": {"linear": 0.02}}


@pytest.mark.parametrize("when", ["while queued and running", "while webhooks are on their way"])
def test_killed_and_started_again_every_job_ends_once_and_is_delivered_once(
    tmp_path: Path, receiver: Receiver, when: str
) -> None:
    if "webhooks" in when:
        receiver.script("/hook", *["/hold"] * JOBS, "/ok")
    settings = {
        "TEMPA_WEBHOOKS__BACKOFF_BASE_SECONDS": "0.2",
        # No lease of the dead server runs out within this test: the next one must void them.
        "TEMPA_JOBS__LEASE_SECONDS": "3600",
        "TEMPA_WEBHOOKS__TIMEOUT_SECONDS": "30",
    }
    server = Server(tmp_path / "data", settings)
    with server:
        with server.http() as http:
            jobs = [_post(http, number, receiver) for number in range(JOBS)]
            if "webhooks" in when:
                receiver.wait_for(1, 60)
            else:
                _wait_until_one_runs(http, jobs)
        server.kill()
        server.start()
        with server.http() as http:
            ended = [wait_for_end(http, job_id) for job_id in jobs]
            assert [job["status"] for job in ended] == ["completed"] * JOBS, [job["error"] for job in ended]
            assert all(job["attempt"] <= 2 for job in ended)
            for job_id in jobs:
                _assert_one_terminal_event(http, job_id)
            _assert_delivered_once_each(http, receiver, jobs)
        assert server.stop() == 0


def test_a_drained_server_hands_running_jobs_back_and_burns_no_crash_retry(
    tmp_path: Path, receiver: Receiver
) -> None:
    server = Server(tmp_path / "data", {"TEMPA_JOBS__MAX_CRASH_RETRIES": "0"})
    with server:
        with server.http() as http:
            jobs = [_post(http, number, receiver) for number in range(3)]
            _wait_until_one_runs(http, jobs)
        assert server.stop() == 0
        server.start()
        with server.http() as http:
            assert {wait_for_end(http, job_id)["status"] for job_id in jobs} == {"completed"}


def _post(http: Any, number: int, receiver: Receiver) -> str:
    body = {**(heavy(number) if number else SEED_001), "webhook_url": receiver.url("/hook")}
    answer = http.post("/v1/models/generate", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def _wait_until_one_runs(http: Any, jobs: list[str]) -> None:
    """Until the first heavy job runs (the one before it is quick)."""
    job = wait_for_start(http, jobs[1])
    assert job["status"] == "processing", "the part is too light to be caught running"


def _assert_one_terminal_event(http: Any, job_id: str) -> None:
    text = http.get(f"/v1/jobs/{job_id}/events").text
    assert sum(text.count(f"event: job.{verb}\n") for verb in ("completed", "failed", "canceled")) == 1
    ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert ids == list(range(1, len(ids) + 1))


def _assert_delivered_once_each(http: Any, receiver: Receiver, jobs: list[str]) -> None:
    """One delivered `webhook-id` a job. A POST cut off by the kill may come twice, under the same id."""
    receiver.release()
    deliveries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    deadline = time.monotonic() + DELIVERED_SECONDS
    while not all(d and d[0]["status"] == "delivered" for d in (deliveries[job_id] for job_id in jobs)):
        assert time.monotonic() < deadline, "a delivery is stuck"
        for job_id in jobs:
            deliveries[job_id] = http.get("/v1/webhooks/deliveries", params={"job_id": job_id}).json()[
                "items"
            ]
    assert all(len(each) == 1 for each in deliveries.values())
    sent: dict[str, set[str]] = defaultdict(set)
    for request in receiver.requests:
        sent[request.headers["webhook-id"]].add(request.path)
    assert len(sent) == len(jobs)
