"""A backup taken under load, a server killed, and another one that goes on from the backup elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.server import Server, wait_for_end
from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from tempa.testing.receiver import Receiver

ENVIRONMENT = {
    "PYTHONPATH": PLUGINS,
    "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "60",
    "TEMPA_WORKER__SLOTS": "2",
    "TEMPA_WEBHOOKS__TIMEOUT_SECONDS": "30",
    "TEMPA_LOG__FORMAT": "json",
}
PATIENCE_SECONDS = 60
AHEAD = 10


def body(number: int, **more: Any) -> dict[str, Any]:
    return {"engine": "trial", "parameters": {"do": "finish", "n": number}} | more


def post(http: httpx2.Client, number: int, **more: Any) -> httpx2.Response:
    key = {"Idempotency-Key": f"ticket-{number}"}
    return http.post("/v1/models/generate", json=body(number, **more), headers=key)


@dataclass
class Crowd:
    """Posts in a thread of its own until it is told to stop, always some ahead of what has ended."""

    server: Server
    tickets: dict[int, str] = field(default_factory=dict)  # what was answered 202
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with self.server.http() as http:
            number = 0
            while not self._stop.is_set():
                answer = post(http, number)
                assert answer.status_code == 202, answer.text
                with self._changed:
                    self.tickets[number] = answer.json()["job_id"]
                    self._changed.notify_all()
                if number >= AHEAD:
                    wait_for_end(http, self.tickets[number - AHEAD])
                number += 1

    def until(self, count: int) -> dict[int, str]:
        """Wait until so many tickets were given; all of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.tickets) >= count, PATIENCE_SECONDS)
            return dict(self.tickets)

    def stop(self) -> None:
        self._stop.set()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", ENVIRONMENT) as server:
        yield server


def tempa(*arguments: str, code: int = 0) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", "tempa", *arguments, "--json"],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout) if ended.stdout else {"said": ended.stderr}
    return document


@pytest.mark.parametrize("form", ["backup", "backup.tar"])
def test_every_ticket_given_before_a_backup_began_is_in_it_and_ends(
    source: Server, tmp_path: Path, form: str
) -> None:
    crowd = Crowd(source)
    thread = threading.Thread(target=crowd.run, daemon=True)
    thread.start()
    before = crowd.until(30)
    told = tempa("backup", str(tmp_path / form), "--data", str(source.data_dir))
    crowd.until(len(before) + 1)  # it was posted all the while
    crowd.stop()
    thread.join(PATIENCE_SECONDS)
    with source.http() as http:
        heard = _last_position(http)  # of events that the backup does not have
    source.kill()

    back = tempa("restore", str(tmp_path / form), "--data", str(tmp_path / "elsewhere"))

    assert told["missing"] == told["damaged"] == []
    assert (back["counts"], back["moved_aside"]) == (told["counts"], None)
    assert len(before) <= told["counts"]["jobs"] <= len(crowd.tickets) + 1  # one was on its way
    with Server(tmp_path / "elsewhere", ENVIRONMENT) as server, server.http() as http:
        for number, job_id in before.items():
            _check_ended(http, number, job_id)
            replay = post(http, number)
            assert (replay.status_code, replay.json()["job_id"]) == (200, job_id)
        news = post(http, 10**6).json()["job_id"]
        _hear_of(http, news, heard)
        assert server.stop() == 0


def _feed(http: httpx2.Client, after: int, wait: int = 0) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get(
        "/v1/events", params={"after": after, "limit": 200, "wait": wait}
    ).json()["items"]
    return items


def _last_position(http: httpx2.Client) -> int:
    """What a reader knows who has read all there is."""
    after = 0
    while page := _feed(http, after):
        after = page[-1]["position"]
    return after


def _hear_of(http: httpx2.Client, job_id: str, after: int) -> None:
    """Read on from a position that was given before, until the job's events come."""
    while page := _feed(http, after, wait=30):
        if job_id in {event["job_id"] for event in page}:
            return
        after = page[-1]["position"]
    raise AssertionError("the feed says nothing to a reader who has heard more than the backup has")


def _check_ended(http: httpx2.Client, number: int, job_id: str) -> None:
    job = wait_for_end(http, job_id)
    assert job["status"] == "completed", job["error"]
    (artifact,) = job["result"]["artifacts"]
    content = http.get(artifact["download_url"], headers={"Authorization": ""}).content
    assert content == f"trial {number}\n".encode()
    assert hashlib.sha256(content).hexdigest() == artifact["sha256"]


def test_what_ran_and_what_was_not_delivered_goes_on_from_the_backup(
    source: Server, tmp_path: Path, receiver: Receiver
) -> None:
    """A kernel is at work and a webhook is on its way; both are done, the webhook under its old id."""
    os.mkfifo(tmp_path / "pipe")
    receiver.script("/hook", "/hold", "/ok")
    with source.http() as http:
        told = post(http, 0, webhook_url=receiver.url("/hook")).json()["job_id"]
        (first,) = receiver.wait_for(1, PATIENCE_SECONDS)
        waits = {"do": "wait", "path": str(tmp_path / "pipe")}
        running = post(http, 1, parameters=waits).json()["job_id"]
        while http.get(f"/v1/jobs/{running}").json()["status"] != "processing":
            assert source.process
            assert source.process.poll() is None
    tempa("backup", str(tmp_path / "backup"), "--data", str(source.data_dir))
    source.kill()
    receiver.release()
    tempa("restore", str(tmp_path / "backup"), "--data", str(tmp_path / "elsewhere"))

    no_crash_may_count = {**ENVIRONMENT, "TEMPA_JOBS__MAX_CRASH_RETRIES": "0"}
    with Server(tmp_path / "elsewhere", no_crash_may_count) as server, server.http() as http:
        (tmp_path / "pipe").open("wb").close()
        assert wait_for_end(http, running)["status"] == "completed"
        again = receiver.wait_for(2, PATIENCE_SECONDS)[-1]
        assert again.headers["webhook-id"] == first.headers["webhook-id"]
        assert wait_for_end(http, told)["status"] == "completed"


def test_a_running_server_is_not_restored_over_and_goes_on(source: Server, tmp_path: Path) -> None:
    tempa("backup", str(tmp_path / "backup"), "--data", str(source.data_dir))

    refused = tempa("restore", str(tmp_path / "backup"), "--data", str(source.data_dir), "--force", code=1)

    assert "in use by process" in refused["said"]
    with source.http() as http:
        assert wait_for_end(http, post(http, 7).json()["job_id"])["status"] == "completed"
