"""`tempa backup` and `tempa restore` as a person and a script meet them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from tempa.adapters.stores.sqlite.schema import prepare
from tempa.cli import output
from tempa.cli.main import app
from tempa.wiring.credentials import load_credentials

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_SECONDS = 60


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A server's directory, nothing in it yet."""
    folder = tmp_path / "data"
    folder.mkdir()
    prepare(folder / "tempa.db")
    load_credentials(folder)
    return folder


@pytest.fixture
def _at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_is_terminal", lambda: True)


def tempa(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, env=environment)


@pytest.mark.usefixtures("_at_a_terminal")
def test_a_person_is_told_what_was_backed_up_and_restored(data: Path, tmp_path: Path) -> None:
    backed_up = tempa("backup", str(tmp_path / "b"), "--data", str(data))
    fresh = tempa("restore", str(tmp_path / "b"), "--data", str(tmp_path / "back"))
    again = tempa("restore", str(tmp_path / "b"), "--data", str(tmp_path / "back"), "--force")

    assert [one.exit_code for one in (backed_up, fresh, again)] == [0, 0, 0], again.output
    assert backed_up.stdout.startswith(f"{tmp_path / 'b'}: 0 jobs (0 not ended), 2 files, ")
    assert ", as of 20" in fresh.stdout
    (aside,) = (tmp_path / "back").glob("before-restore-*")
    assert f"What was there lies in {aside}." in again.stderr


def test_a_program_gets_one_document(data: Path, tmp_path: Path) -> None:
    backed_up = json.loads(tempa("backup", str(tmp_path / "b.tar"), "--data", str(data)).stdout)
    restored = json.loads(tempa("restore", str(tmp_path / "b.tar"), "--data", str(tmp_path / "r")).stdout)

    assert (backed_up["backup"], backed_up["files"], backed_up["missing"]) == (str(tmp_path / "b.tar"), 2, [])
    assert (restored["data_dir"], restored["moved_aside"]) == (str(tmp_path / "r"), None)
    assert backed_up["counts"] == restored["counts"]


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        (["backup", "{tmp}/b", "--data", "{tmp}/nowhere"], {}, 2, "There is no store in"),
        (["backup", "{tmp}", "--data", "{tmp}/data"], {}, 1, "is there already"),
        (["backup", "{tmp}/b"], {"TEMPA_STORE__URL": "postgresql://x"}, 1, "pg_dump"),
        (["restore", "{tmp}/nowhere", "--data", "{tmp}/r"], {}, 1, "There is no backup at"),
        (["restore", "{tmp}/data", "--data", "{tmp}/r"], {}, 1, "it has no manifest.json"),
    ],
)
def test_what_cannot_be_done_is_told_in_words(
    data: Path, tmp_path: Path, arguments: list[str], environment: dict[str, str], code: int, said: str
) -> None:
    given = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    before = sorted(data.iterdir())

    result = tempa(*given, **environment)

    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert {path.name for path in data.iterdir()} - {path.name for path in before} <= {"lock"}


@pytest.mark.parametrize("form", ["b", "b.tar"])
def test_a_backup_that_is_told_to_end_leaves_nothing(data: Path, tmp_path: Path, form: str) -> None:
    """It reads from a pipe in place of the credentials, so that it can be met in the middle."""
    (data / "credentials.json").unlink()
    os.mkfifo(data / "credentials.json")
    command = [sys.executable, "-m", "tempa", "backup", str(tmp_path / form), "--data", str(data)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        with (data / "credentials.json").open("wb"):  # returns when the other end reads
            assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")]
            process.send_signal(signal.SIGTERM)
        # The pipe is closed: a signal that came just before the read began is seen behind it.
        assert process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGTERM

    assert [path.name for path in tmp_path.iterdir()] == ["data"]
