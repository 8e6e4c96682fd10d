"""A whole Tempa server as a child process: for tests, benches, and commands that need one of their own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import httpx2

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_SECONDS = 30
STOP_SECONDS = 30


class StartFault(Exception):  # noqa: N818 - it says what is the case
    """The server does not serve; its log says why."""


@dataclass
class Server:
    """`tempa up` on one data directory. `stop` drains it, `kill` is kill -9.

    What it logs lies beside the data directory, if `log` names no other place.
    """

    data_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    ready: Mapping[str, Any] | None = None

    def start(self) -> Self:
        """Start, and wait until it says that it serves. Raises StartFault."""
        self.spawn()
        self.wait_until_ready()
        return self

    def spawn(self) -> None:
        """Start, in a session of its own: Ctrl-C is for us, who then stop it in good order."""
        log = self.log or self.data_dir.with_name(f"{self.data_dir.name}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tempa", "up", "--port", "0", "--data", str(self.data_dir)]
        with log.open("ab") as told:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=told,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def wait_until_ready(self) -> Mapping[str, Any]:
        """Its ready file's content, once it serves. Raises StartFault."""
        assert self.process
        assert self.process.stdout
        spoke, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)  # once it serves
        if not spoke:
            raise StartFault(f"The server was not ready within {START_SECONDS} s.")
        if not self.process.stdout.readline():
            raise StartFault(f"The server ended at once: exit code {self.process.wait(STOP_SECONDS)}.")
        self.ready = json.loads((self.data_dir / "ready.json").read_text())
        return self.ready

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
        """SIGTERM, as a supervisor does, and SIGKILL only if that is not heard; returns the exit status."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        try:
            return self._ended(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self._ended(STOP_SECONDS)

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
