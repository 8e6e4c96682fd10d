"""A whole Tempa server as a child process, to be started, killed and started again by tests and benches."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx2

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_SECONDS = 30
SEED_001: dict[str, Any] = {
    "engine": "opencascade-brep",
    "export_format": "step",
    "parameters": {
        "outer_diameter": 120.5,
        "inner_diameter": 45.0,
        "length": 300.0,
        "fillet_radius": 2.5,
        "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
    },
}


@dataclass
class Server:
    """`tempa up` on one data directory. `stop` drains it, `kill` is kill -9."""

    data_dir: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    ready: Mapping[str, Any] | None = None

    def start(self) -> Self:
        """Start, and wait until it says that it serves."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        log = (self.data_dir.parent / f"{self.data_dir.name}.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "tempa", "up", "--port", "0", "--data", str(self.data_dir),
                    "--ready-file", str(self.data_dir / "told.json"),
                ],
                stdout=subprocess.PIPE, stderr=log, env={**os.environ, **self.environment},
                start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout
        spoke, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)  # once it serves
        assert spoke, f"no sign of life within {START_SECONDS} s; see {log.name}"
        assert self.process.stdout.readline(), f"the server ended at its start; see {log.name}"
        self.ready = json.loads((self.data_dir / "told.json").read_text())
        return self

    def __enter__(self) -> Self:
        return self if self.process else self.start()

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """Kill -9."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self._ended(10)

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self._ended(30)

    def _ended(self, seconds: float) -> int:
        assert self.process
        assert self.process.stdout
        status = self.process.wait(seconds)
        self.process.stdout.close()
        return status

    @property
    def url(self) -> str:
        """Where it serves."""
        assert self.ready
        return str(self.ready["url"])

    @property
    def secret(self) -> str:
        """The account's signing secret."""
        assert self.ready
        return str(self.ready["webhook_secret"])

    def http(self) -> httpx2.Client:
        """An HTTP client with the server's first key."""
        assert self.ready
        headers = {"Authorization": f"Bearer {self.ready['api_key']}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)


def wait_for_end(http: httpx2.Client, job_id: str) -> dict[str, Any]:
    """Long-poll until the job is terminal."""
    return _wait_past(http, job_id, {"queued", "processing"})


def wait_for_start(http: httpx2.Client, job_id: str) -> dict[str, Any]:
    """Long-poll until the job is no longer queued."""
    return _wait_past(http, job_id, {"queued"})


def _wait_past(http: httpx2.Client, job_id: str, statuses: set[str]) -> dict[str, Any]:
    etag = ""
    while True:
        answer = http.get(f"/v1/jobs/{job_id}", params={"wait": 10}, headers={"If-None-Match": etag})
        if answer.status_code == 304:
            continue
        job: dict[str, Any] = answer.json()
        if job["status"] not in statuses:
            return job
        etag = answer.headers["etag"]
