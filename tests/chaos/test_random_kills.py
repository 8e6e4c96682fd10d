"""SIGKILL at random moments under load, again and again on one directory: nothing lost, nothing twice."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tempa.testing.receiver import Receiver
from tempa.testing.seeds import SEED_001
from tempa.testing.server import Server, wait_for_end
from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator


ROUNDS = 60
POSTS = 6


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as listening:
        yield listening


def body(number: int, receiver: Receiver) -> dict[str, Any]:
    """Real parts and trial jobs in turn, no two alike."""
    common = {"webhook_url": receiver.url("/hook"), "tags": {"n": str(number)}}
    if number % 3:
        return {"engine": "trial", "parameters": {"do": "finish", "n": number}, **common}
    return {**SEED_001, "parameters": {**SEED_001["parameters"], "length": 300.0 + number}, **common}


def ask(server: Server, number: int, receiver: Receiver) -> str | None:
    """A ticket, or None when the answer was lost with the server."""
    headers = {"Idempotency-Key": f"chaos-{number}"}
    with contextlib.suppress(httpx2.HTTPError), server.http() as http:
        answer = http.post("/v1/models/generate", json=body(number, receiver), headers=headers)
        assert answer.status_code in {200, 202}, answer.text
        return str(answer.json()["job_id"])
    return None


@pytest.mark.chaos
def test_no_ticket_is_lost_and_nothing_ends_twice(tmp_path: Path, receiver: Receiver) -> None:
    rng = random.Random(20261130)
    settings = {
        "PYTHONPATH": PLUGINS,
        "TEMPA_JOBS__MAX_CRASH_RETRIES": "10",  # a job may be hit by several of these kills
        "TEMPA_WEBHOOKS__BACKOFF_BASE_SECONDS": "0.2",
    }
    server = Server(tmp_path / "data", settings)
    tickets: dict[int, str] = {}
    with server, ThreadPoolExecutor(POSTS) as pool:
        for turn in range(ROUNDS):
            numbers = range(turn * POSTS, (turn + 1) * POSTS)
            asked = {number: pool.submit(ask, server, number, receiver) for number in numbers}
            assert server.process
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(rng.uniform(0.0, 0.6))  # it does not end by itself: a random moment
            server.kill()
            tickets |= {number: job_id for number, ask_ in asked.items() if (job_id := ask_.result())}
            server.start()
        _check_everything(server, tickets, receiver)
        assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "tempa.db")) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]


def _check_everything(server: Server, tickets: dict[int, str], receiver: Receiver) -> None:
    assert len(tickets) > ROUNDS
    with server.http() as http:
        for number in range(ROUNDS * POSTS):  # a lost answer: the same key finds the job, or makes it now
            headers = {"Idempotency-Key": f"chaos-{number}"}
            answer = http.post("/v1/models/generate", json=body(number, receiver), headers=headers)
            assert tickets.setdefault(number, answer.json()["job_id"]) == answer.json()["job_id"]
        for job_id in tickets.values():
            job = wait_for_end(http, job_id)
            assert job["status"] == "completed", job["error"]
            _check_files(http, job)
            _check_log(http, job_id)
        _check_deliveries(http, receiver, tickets)


def _check_files(http: httpx2.Client, job: dict[str, Any]) -> None:
    for artifact in job["result"]["artifacts"]:
        data = http.get(artifact["download_url"]).content
        assert hashlib.sha256(data).hexdigest() == artifact["sha256"]


def _check_log(http: httpx2.Client, job_id: str) -> None:
    text = http.get(f"/v1/jobs/{job_id}/events").text
    numbers = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert text.count("event: job.completed\n") == 1
    assert text.count("event: job.failed\n") + text.count("event: job.canceled\n") == 0


def _check_deliveries(http: httpx2.Client, receiver: Receiver, tickets: dict[int, str]) -> None:
    for job_id in tickets.values():
        delivered: list[dict[str, Any]] = []
        while not delivered:
            page = http.get("/v1/webhooks/deliveries", params={"job_id": job_id}).json()["items"]
            delivered = [one for one in page if one["status"] == "delivered"]
            assert len(page) == 1
    ids = {request.headers["webhook-id"] for request in receiver.requests}
    assert len(ids) == len(tickets)
