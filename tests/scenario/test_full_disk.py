"""A full disk: nothing is acknowledged that is not kept, and all goes on once there is room."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tempa.testing.server import START_SECONDS, STOP_SECONDS, Server, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

DISK_BYTES = 12 << 20


def part(length: float) -> dict[str, Any]:
    return {"parameters": {"outer_diameter": 3.0, "inner_diameter": 1.0, "length": length}}


def ask(http: httpx2.Client, length: float) -> httpx2.Response:
    key = {"Idempotency-Key": f"length-{length}"}
    return http.post("/v1/models/generate", json=part(length), headers=key)


def test_while_files_cannot_grow_requests_are_refused_and_taken_again_after(tmp_path: Path) -> None:
    """By the limit on file sizes: every write of the server's fails, wherever it may go."""
    with Server(tmp_path / "data") as server, server.http() as http:
        before = ask(http, 1.0).json()["job_id"]
        assert wait_for_end(http, before)["status"] == "completed"
        assert server.process
        with files_may_not_grow(server.process.pid):
            refused = ask(http, 2.0)
            uploaded = http.post("/v1/files", content=b"solid")
            kept = http.get(f"/v1/jobs/{before}")
            ready = http.get("/readyz").status_code
        after = ask(http, 2.0)
        ended = wait_for_end(http, after.json()["job_id"])

        assert (refused.status_code, refused.json()["type"]) == (503, "urn:tempa:problem:store-unavailable")
        assert int(refused.headers["Retry-After"]) >= 1
        assert (uploaded.status_code, int(uploaded.headers["Retry-After"]) >= 1) == (503, True)
        assert (kept.status_code, kept.json()["status"]) == (200, "completed")
        assert ready == 503
        assert after.status_code == 202  # the key of a request that was refused binds nothing
        assert ended["status"] == "completed"
        assert server.stop() == 0


@contextmanager
def files_may_not_grow(pid: int) -> Iterator[None]:
    old = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, old[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)


@dataclass(frozen=True)
class SmallDisk:
    """A file system of a few megabytes; it is seen only by what runs in its keeper's namespaces."""

    keeper: int
    path: Path

    @property
    def seen(self) -> Path:
        """The same place, from outside."""
        return Path(f"/proc/{self.keeper}/root{self.path}")

    @contextmanager
    def start(self, data: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
        """A server on this disk; killed at the end if it has not stopped by itself."""
        enter = ["nsenter", "--preserve-credentials", "--user", "--mount", "--target", str(self.keeper)]
        serve = [sys.executable, "-m", "tempa", "up", "--port", "0", "--data", str(data), *flags]
        environment = {**os.environ, "TEMPA_LOG__LEVEL": "error"}
        command, pipe = [*enter, *serve], subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe) as process:
            try:
                yield process
            finally:
                process.kill()

    def fill(self) -> None:
        """To the last byte."""
        with (self.seen / "filler").open("ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while filler.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        (self.seen / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Needs no privilege, but a kernel that gives user namespaces to everybody."""
    mount = f'mount -t tmpfs -o size={DISK_BYTES} tmpfs "$1" && echo mounted && exec cat'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout
        if keeper.stdout.readline() != b"mounted\n":
            pytest.skip("this kernel gives no user namespaces: no small disk can be mounted")
        try:
            yield SmallDisk(keeper.pid, tmp_path)
        finally:
            keeper.kill()


def test_on_a_full_disk_nothing_is_promised_that_is_not_kept_and_then_all_goes_on(disk: SmallDisk) -> None:
    with disk.start(disk.path / "data") as process, client_of(process) as http:
        first = ask(http, 1.0).json()["job_id"]
        assert wait_for_end(http, first)["status"] == "completed"
        disk.fill()
        answers = [ask(http, 10.0 + n) for n in range(60)]  # the log has some room left, for a while
        disk.make_room()
        again = ask(http, 69.0)
        process.kill()
        process.wait(STOP_SECONDS)
    with disk.start(disk.path / "data") as process, client_of(process) as http:
        taken = [answer.json()["job_id"] for answer in answers if answer.status_code == 202]
        ended = [wait_for_end(http, job_id)["status"] for job_id in (first, again.json()["job_id"], *taken)]
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0

    refused = answers[-1]
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:tempa:problem:store-unavailable")
    assert int(refused.headers["Retry-After"]) >= 1
    assert again.status_code == 202
    assert {*ended} == {"completed"}


@pytest.mark.parametrize("full", ["data", "ready file"])
def test_a_start_that_finds_no_room_says_so_in_one_line(disk: SmallDisk, tmp_path: Path, full: str) -> None:
    ready = disk.path / "said.json"
    data = disk.path / "data" if full == "data" else tmp_path.with_name(f"{tmp_path.name}-data")
    disk.fill()

    with disk.start(data, "--ready-file", str(ready)) as process:
        out, error = process.communicate(timeout=START_SECONDS)
        left = [path.name for path in disk.seen.iterdir() if "said" in path.name]

    assert (process.returncode, out) == (1, b""), error
    (line,) = error.decode().splitlines()
    assert line.startswith(str(data) if full == "data" else f"{ready}: No space left on device. Make room")
    assert left == []


@contextmanager
def client_of(process: subprocess.Popen[bytes]) -> Iterator[httpx2.Client]:
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    headers = {"Authorization": f"Bearer {ready['api_key']}"}
    with httpx2.Client(base_url=ready["url"], headers=headers, timeout=60, trust_env=False) as http:
        yield http
