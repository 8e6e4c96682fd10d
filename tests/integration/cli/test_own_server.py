"""A server of one's own never outlives its command, whatever ends that; and one that nobody reads goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 60


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment without a server, with a folder of its own for passing files, and the trial engine."""
    (tmp_path / "passing").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPA_")}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests/plugins")])
    places = {"XDG_DATA_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "passing")}
    return {**kept, **places, "PYTHONPATH": path, "TEMPA_LOG__LEVEL": "error"}


@contextmanager
def running(home: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tempa", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=home, stdout=pipe, stderr=pipe, text=True, cwd=home["TMPDIR"]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(stream: IO[str] | None, words: str) -> str:
    assert stream is not None
    for line in stream:
        if words in line:
            return line
    pytest.fail(f"it ended and never said {words!r}")


def wait_for(ready: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The ready file's content, where nothing can be read of what the server prints."""
    for _ in range(TIMEOUT_SECONDS * 50):
        if ready.exists():  # renamed into place: whole or not there
            return dict(json.loads(ready.read_text()))
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended: {process.wait(0.02)}")
    pytest.fail("it was never ready")


def is_alive(pid: int) -> bool:
    """Orphans that ended count as alive where nobody reaps them: look at their state, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def server_of(folder: Path) -> Iterator[int]:
    """The pid of the server whose ready file lies in `folder`; killed in the end if it is still there."""
    (ready,) = folder.rglob("data/ready.json")
    pid = int(json.loads(ready.read_text())["pid"])
    try:
        yield pid
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_the_example_is_accepted_and_comes_out_right(home: dict[str, str], tmp_path: Path) -> None:
    example = str(ROOT / "examples/flanged-tube.json")

    with running(home, "run", "cad", example, "-o", str(tmp_path / "out")) as process:
        job, said = process.communicate(timeout=TIMEOUT_SECONDS)

    assert process.returncode == 0, said
    assert (tmp_path / "out/model.step").read_bytes().startswith(b"ISO-10303-21;")
    measured = json.loads(job)["result"]["measurements"]["volume"]
    assert measured == pytest.approx(2801746.16196747, rel=1e-9)  # CONTRACTS section 2, in closed form


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_run_takes_its_server_and_its_folder_with_it(
    home: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "gate")  # nobody opens it: the job runs until it is stopped
    document = {"engine": "trial", "parameters": {"do": "wait", "path": str(tmp_path / "gate")}}
    (tmp_path / "r.json").write_text(json.dumps(document))

    patient = {**home, "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "600"}

    with running(patient, "run", "cad", str(tmp_path / "r.json"), "-o", str(tmp_path / "out")) as process:
        read_until(process.stderr, "queued")
        with server_of(tmp_path / "passing") as server:
            process.send_signal(number)

            assert process.wait(TIMEOUT_SECONDS) == 128 + number
            assert not is_alive(server)
    assert list((tmp_path / "passing").iterdir()) == []


def test_a_server_that_does_not_come_up_says_why(home: dict[str, str], tmp_path: Path) -> None:
    example = str(ROOT / "examples/flanged-tube.json")
    wrong = {**home, "TEMPA_JOBS__LEASE_SECONDS": "long"}

    with running(wrong, "run", "cad", example, "-o", str(tmp_path / "out")) as process:
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)

    assert process.returncode == 1
    assert "The server ended at once: exit code 2." in said
    assert "jobs.lease_seconds" in said  # the end of its log
    assert "Traceback" not in said
    assert list((tmp_path / "passing").iterdir()) == []


def test_the_demo_takes_its_server_with_it(home: dict[str, str], tmp_path: Path) -> None:
    with running(home, "demo", "-o", str(tmp_path / "demo")) as process:
        read_until(process.stdout, "Server")
        with server_of(tmp_path / "demo") as server:
            process.send_signal(signal.SIGTERM)

            assert process.wait(TIMEOUT_SECONDS) == 143
            assert not is_alive(server)
    assert list(tmp_path.glob("demo/**/ready.json")) == []


def test_a_ready_file_that_cannot_be_written_is_one_line(home: dict[str, str], tmp_path: Path) -> None:
    """Found only once it serves: the name of the file that is renamed into place is too long."""
    ready = tmp_path / ("r" * 250)
    result = subprocess.run(
        [sys.executable, "-m", "tempa", "up", "--port", "0", "--ready-file", str(ready)],
        env=home,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"{ready}: File name too long.\n"


@pytest.mark.parametrize("kind", ["a pipe that nobody reads", "a full disk", "closed"])
def test_up_serves_whoever_reads_what_it_prints(home: dict[str, str], tmp_path: Path, kind: str) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "tempa", "up", "--port", "0", "--ready-file", str(ready)]
    if kind == "closed":
        command = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command]
    reading, stdout = os.pipe()
    os.close(reading)
    if kind == "a full disk":
        os.close(stdout)
        stdout = os.open("/dev/full", os.O_WRONLY)
    log = tmp_path / "log"
    with log.open("wb") as said, subprocess.Popen(command, env=home, stdout=stdout, stderr=said) as process:
        os.close(stdout)
        try:
            url = wait_for(ready, process)["url"]
            with urllib.request.urlopen(f"{url}/livez", timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - http
                assert answer.status == 200
            process.terminate()
            assert process.wait(TIMEOUT_SECONDS) == 0
        finally:
            process.kill()
    assert log.read_text() == ""
