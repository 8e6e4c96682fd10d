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
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START_SECONDS = 30
STOP_SECONDS = 30


class StartFault(Exception):  # noqa: N818 - it says what is the case
    """The server does not serve; its log says why."""


@dataclass
class Server:
    """One process of Tempa. `stop` drains it, `kill` is kill -9.

    What it logs lies beside the data directory, if `log` names no other place. `command` is what it
    does: `tempa up`, if nothing else; one that shares its data directory has a `ready_file` of its own.
    """

    data_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    command: Sequence[str] = ("up", "--port", "0")
    ready_file: Path | None = None
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
        where = ["--data", str(self.data_dir)]
        if self.ready_file is not None:
            where += ["--ready-file", str(self.ready_file)]
        command = [sys.executable, "-m", "tempa", *self.command, *where]
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
        self.ready = json.loads((self.ready_file or self.data_dir / "ready.json").read_text())
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

    def metrics(self) -> str:
        """What it has counted."""
        with self.http() as http:
            return http.get("/metrics").text


@dataclass
class Fleet:
    """The same server as several processes on one PostgreSQL: one with the API, and workers.

    `store_url` leads to a database of its own. What is asked of a `Server` can be asked of it.
    """

    data_dir: Path
    store_url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: int = 2
    processes: list[Server] = field(default_factory=list)

    def start(self) -> Self:
        """Start all at once, and wait until all are at work. Raises StartFault."""
        roles = "api,deliverer,rescuer,janitor"
        self.processes = [
            self._process("api", "serve", "--roles", roles, "--port", "0"),
            *(self._process(f"worker-{n}", "worker", "--port", "0") for n in range(self.workers)),
        ]
        try:
            for process in self.processes:
                process.spawn()
            for process in self.processes:
                process.wait_until_ready()
        except StartFault:
            self.__exit__()
            raise
        return self

    def _process(self, name: str, *command: str) -> Server:
        beside = self.data_dir.with_name
        return Server(
            self.data_dir,
            {**self.environment, "TEMPA_STORE__URL": self.store_url},
            beside(f"{self.data_dir.name}-{name}.log"),
            command,
            beside(f"{self.data_dir.name}-{name}.json"),
        )

    def __enter__(self) -> Self:
        return self if self.processes else self.start()

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.__exit__()

    def kill(self) -> None:
        """Kill -9, all of them."""
        for process in self.processes:
            process.kill()

    def stop(self) -> int:
        """SIGTERM to each, one after the other; returns the worst exit status."""
        return max(process.stop() for process in self.processes)

    @property
    def ready(self) -> Mapping[str, Any] | None:
        """What the process with the API says of itself."""
        return self.processes[0].ready

    @property
    def url(self) -> str:
        """Where the API is served."""
        return self.processes[0].url

    @property
    def secret(self) -> str:
        """The account's signing secret."""
        return self.processes[0].secret

    def http(self) -> httpx2.Client:
        """An HTTP client of the API with the first key."""
        return self.processes[0].http()

    def metrics(self) -> str:
        """What all of its processes have counted."""
        return "".join(process.metrics() for process in self.processes)


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
