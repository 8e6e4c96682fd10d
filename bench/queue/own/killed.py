"""A worker is killed; how long until its job runs elsewhere, with a lease of two seconds."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.environments import ROOT
from bench.queue.services import postgres
from bench.ratios import Goal
from bench.table import Row
from tempa.testing.server import Fleet, wait_for_end

if TYPE_CHECKING:
    import httpx2

    from tempa.testing.server import Server

LEASE_SECONDS = 2.0
GOAL = Goal(LEASE_SECONDS + 2.0, at_least=False)
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "tests" / "plugins"),  # the trial engine, by the public door
    "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "60",
    "TEMPA_JOBS__LEASE_SECONDS": str(LEASE_SECONDS),
    "TEMPA_JOBS__BEAT_SECONDS": "0.5",
    "TEMPA_WORKER__SLOTS": "1",
    "TEMPA_LOG__FORMAT": "json",
}


def killed(folder: Path, rounds: int) -> list[Row]:
    """Kill the worker that runs the job, at once, each time in a fleet of its own."""
    took = [_seconds(folder / f"fleet-{number}") for number in range(rounds)]
    return [Row("killed worker to running elsewhere, s", took, GOAL, note=f"lease {LEASE_SECONDS:g} s")]


def _seconds(folder: Path) -> float:
    folder.mkdir()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with (
        postgres() as cluster,
        cluster.fresh() as url,
        Fleet(folder / "data", url, ENVIRONMENT) as fleet,
        fleet.http() as http,
    ):
        body = {"engine": "trial", "parameters": {"do": "wait", "path": str(pipe)}}
        job_id = http.post("/v1/models/generate", json=body).raise_for_status().json()["job_id"]
        _wait_for_starts(http, job_id, 1)
        _holder(fleet, job_id).kill()
        start = time.monotonic()
        _wait_for_starts(http, job_id, 2)
        took = time.monotonic() - start
        pipe.open("wb").close()
        assert wait_for_end(http, job_id)["status"] == "completed"
        return took


def _wait_for_starts(http: httpx2.Client, job_id: str, times: int) -> None:
    seen = 0
    with http.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
        for line in stream.iter_lines():
            seen += line == "event: job.started"
            if seen == times:
                return
    raise AssertionError(f"the job was not started {times} times")


def _holder(fleet: Fleet, job_id: str) -> Server:
    (found,) = (worker for worker in fleet.processes[1:] if _claimed(worker, job_id))
    return found


def _claimed(worker: Server, job_id: str) -> bool:
    assert worker.log
    lines = Path(worker.log).read_text(errors="replace").splitlines()
    return any("job claimed" in line and job_id in line for line in lines)
