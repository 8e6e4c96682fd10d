"""The command line against a real server: what starts one, finds one, and receives from one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

from tempa.cli.main import app
from tempa.client import Client, NotAuthorized

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 60


def environment(folder: Path) -> dict[str, str]:
    """One that knows of no server but those in `folder`, and has the trial engine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPA_")}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests/plugins")])
    return {**kept, "XDG_DATA_HOME": str(folder), "PYTHONPATH": path, "TEMPA_LOG__LEVEL": "error"}


def tempa(home: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tempa", *arguments],
        env=home,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@contextmanager
def running(home: dict[str, str], *arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A command that goes on, and what it prints; killed at the end if it did not stop by itself."""
    command = [sys.executable, "-m", "tempa", *arguments]
    with subprocess.Popen(command, env=home, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.kill()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment without a server."""
    return environment(tmp_path)


@dataclass(frozen=True)
class Served:
    """An environment with a server: `ready` is what `tempa up` printed."""

    home: dict[str, str]
    ready: dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = environment(tmp_path_factory.mktemp("served"))
    with running(home, "up", "--port", "0") as (process, printed):
        yield Served(home, json.loads(printed.readline()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"engine": "trial", "parameters": {"do": "finish"}}))
    return str(file)


def test_up_says_where_it_serves_and_the_ready_file_says_the_same(served: Served) -> None:
    """But for the signing secret, which is not printed into whatever reads the pipe."""
    ready_file = Path(served.home["XDG_DATA_HOME"]) / "tempa/ready.json"
    content = json.loads(ready_file.read_text())

    assert ready_file.stat().st_mode & 0o777 == 0o600
    assert content.pop("webhook_secret").startswith("whsec_")
    assert content == served.ready


def test_commands_find_the_local_server(served: Served, request_file: str, tmp_path: Path) -> None:
    ran = tempa(served.home, "run", "cad", request_file, "-o", str(tmp_path / "out"))
    job = json.loads(ran.stdout)
    listed = json.loads(tempa(served.home, "jobs", "ls").stdout)["items"]
    events = tempa(served.home, "jobs", "events", job["job_id"]).stdout.splitlines()

    assert [job["job_id"] for job in listed] == [job["job_id"]]
    assert [Path(file).read_text() for file in job["files"]] == ["trial 0\n"]
    assert [json.loads(line)["type"] for line in events][-1] == "job.completed"
    assert "started for this command" not in ran.stderr


def test_json_is_what_the_api_answers(served: Served, request_file: str) -> None:
    job_id = json.loads(tempa(served.home, "submit", request_file, "--wait").stdout.splitlines()[-1])[
        "job_id"
    ]
    key = {"Authorization": f"Bearer {served.ready['api_key']}"}
    answer = httpx2.get(f"{served.ready['url']}/v1/jobs/{job_id}", headers=key).json()

    printed = json.loads(tempa(served.home, "jobs", "get", job_id).stdout)

    assert without_links(printed) == without_links(answer)


def without_links(job: dict[str, Any]) -> dict[str, Any]:
    """Links are minted anew for each answer."""
    result = job["result"]
    minted = {"download_url": None, "expires_at": None}
    artifacts = [{**artifact, **minted} for artifact in result["artifacts"]]
    return {**job, "result": {**result, **minted, "artifacts": artifacts}}


def test_a_job_that_fails_ends_the_wait_with_3(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps({"engine": "trial", "parameters": {"do": "raise", "code": "FILLET_FAILED"}}))

    result = tempa(served.home, "submit", str(file), "--wait")

    assert result.returncode == 3
    assert "FILLET_FAILED" in result.stderr
    assert "Lower the radius" in result.stderr


def in_process(home: dict[str, str], *arguments: str) -> Result:
    """For commands that speak to the store: the same code, without the start of an interpreter."""
    return CliRunner().invoke(app, list(arguments), env=home)


def test_keys_are_made_in_the_store_and_work_at_the_server(home: dict[str, str]) -> None:
    made = json.loads(in_process(home, "keys", "create", "ci", "--scope", "jobs:read").stdout)
    revoked = json.loads(in_process(home, "keys", "create", "old").stdout)
    assert in_process(home, "keys", "revoke", revoked["id"]).exit_code == 0
    listed = json.loads(in_process(home, "keys", "ls").stdout)["items"]
    assert {key["name"]: key["revoked_at"] is None for key in listed}.items() >= {
        ("ci", True),
        ("old", False),
    }

    with running(home, "up", "--port", "0") as (_, printed):
        url = json.loads(printed.readline())["url"]

        with Client(url, made["api_key"]) as reader, Client(url, revoked["api_key"]) as nobody:
            assert list(reader.jobs()) == []
            with pytest.raises(NotAuthorized, match="scope"):
                list(reader.deliveries())
            with pytest.raises(NotAuthorized) as caught:
                list(nobody.jobs())
        assert caught.value.slug == "revoked-key"
        assert in_process(home, "keys", "ls").exit_code == 1  # the server holds the lock


@pytest.mark.parametrize("arguments", [["revoke", "key_none"], ["create", "x", "--scope", "root"]])
def test_a_key_or_scope_that_is_not_there_is_told(home: dict[str, str], arguments: list[str]) -> None:
    in_process(home, "keys", "create", "first")

    result = in_process(home, "keys", *arguments)

    assert result.exit_code == {"revoke": 1, "create": 2}[arguments[0]]
    assert "There is no" in result.stderr


def test_migrate_takes_the_store_that_is_there(home: dict[str, str]) -> None:
    in_process(home, "keys", "create", "first")

    assert json.loads(in_process(home, "migrate").stdout)["migrated"] is True


@pytest.mark.parametrize("command", [["keys", "ls"], ["keys", "revoke", "key_1"], ["migrate"]], ids=" ".join)
def test_what_only_looks_at_a_store_does_not_make_one(
    home: dict[str, str], tmp_path: Path, command: list[str]
) -> None:
    result = in_process(home, *command, "--data", str(tmp_path / "mistyped"))

    assert result.exit_code == 2
    assert f"There is no store in {tmp_path / 'mistyped'}" in result.stderr
    assert not (tmp_path / "mistyped").exists()


def test_run_without_a_server_starts_its_own_and_stops_it(
    home: dict[str, str], request_file: str, tmp_path: Path
) -> None:
    result = tempa(home, "run", "cad", request_file, "-o", str(tmp_path / "out"))

    assert result.returncode == 0, result.stderr
    assert "No server runs here; one is started for this command." in result.stderr
    assert (tmp_path / "out/trial.txt").read_text() == "trial 0\n"
    assert not (tmp_path / "tempa").exists()


def test_run_passes_by_the_ready_file_of_a_server_that_is_gone(
    home: dict[str, str], request_file: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (tmp_path / "tempa").mkdir()
    (tmp_path / "tempa/ready.json").write_text(
        json.dumps({"url": f"http://127.0.0.1:{port}", "api_key": "k"})
    )

    assert tempa(home, "run", "cad", request_file, "-o", str(tmp_path / "out")).returncode == 0


def test_a_port_that_is_taken_is_told_with_the_way_out(home: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = tempa(home, "up", "--port", str(taken.getsockname()[1]))

    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith("Give another port, for example --port 0.")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "content"), [("credentials.json", b'{"api_key": "temp'), ("tempa.db", b"no database" * 1000)]
)
def test_a_damaged_file_of_the_data_directory_is_told_in_one_sentence(
    home: dict[str, str], tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / "tempa").mkdir()
    (tmp_path / "tempa" / name).write_bytes(content)

    result = tempa(home, "up", "--port", "0")

    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(str(tmp_path / "tempa" / name))
    assert "Restore it from a backup; or move it away" in line
    assert (tmp_path / "tempa" / name).read_bytes() == content


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("TEMPA_SERVER_PORT", "did you mean TEMPA_SERVER__PORT?"),
        ("TEMPA_ENGINES__NOPE__ENABLED", "installed: mesh-splat, opencascade-brep"),
        ("TEMPA_ENGINES__TRIAL__PYTHON", "leave this setting out"),
    ],
)
def test_a_variable_that_would_do_nothing_stops_the_start(
    home: dict[str, str], variable: str, words: str
) -> None:
    result = tempa({**home, variable: sys.executable}, "up", "--port", "0")

    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert words in result.stderr


def test_two_servers_do_not_share_a_directory(served: Served) -> None:
    result = tempa(served.home, "up", "--port", "0")

    assert result.returncode == 1
    assert f"in use by process {served.ready['pid']}" in result.stderr


def test_two_servers_do_not_share_their_artifacts(home: dict[str, str], tmp_path: Path) -> None:
    """Of each other's uploads they would know nothing, and sweep them away."""
    shared = {**home, "TEMPA_ARTIFACTS__URL": f"file://{tmp_path}/shared"}
    with running(shared, "up", "--port", "0", "--data", str(tmp_path / "one")) as (process, printed):
        pid = json.loads(printed.readline())["pid"]
        result = tempa(shared, "up", "--port", "0", "--data", str(tmp_path / "two"))

        assert result.returncode == 1
        assert f"in use by process {pid}" in result.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0


def test_listen_verifies_what_the_server_sends(served: Served, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(served.home, "webhooks", "listen", "--port", str(port), "--count", "1") as (
        process,
        printed,
    ):
        document = {
            "engine": "trial",
            "parameters": {"do": "finish"},
            "webhook_url": f"http://127.0.0.1:{port}/ok",
        }
        (tmp_path / "r.json").write_text(json.dumps(document))
        submitted = tempa(served.home, "submit", str(tmp_path / "r.json"))
        told = json.loads(printed.readline())

        assert process.wait(TIMEOUT_SECONDS) == 0
    assert (told["verifies"], told["hex_matches"], told["path"]) == (True, True, "/ok")
    assert told["event"]["data"]["job_id"] == json.loads(submitted.stdout)["job_id"]
