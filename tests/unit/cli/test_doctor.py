"""`tempa doctor`: settings with their sources, secrets masked; each check in both its outcomes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import pytest

from tempa.cli import checks, connect
from tempa.cli.doctor import effective
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Terminal

Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - as shutil.disk_usage gives it


def test_each_setting_has_its_source() -> None:
    settings = load_settings(None, {"server.port": 0}, {"TEMPA_JOBS__LEASE_SECONDS": "60"})

    shown = effective(settings)

    assert shown["server.port"] == {"value": 0, "source": "flag"}
    assert shown["jobs.lease_seconds"] == {"value": 60.0, "source": "TEMPA_JOBS__LEASE_SECONDS"}
    assert shown["jobs.beat_seconds"]["source"] == "default"
    assert "limits.json_body_bytes" in shown  # also what only the code has a default for


def test_secrets_are_masked_and_their_absence_is_not() -> None:
    key = "ab" * 32

    assert key not in json.dumps(effective(load_settings(None, {}, {"TEMPA_LINKS__KEY": key})))
    assert effective(load_settings(None, {}, {}))["links.key"]["value"] == ""


class TestChecks:
    @pytest.mark.parametrize(("free", "state"), [(1 << 40, "ok"), (1 << 29, "warning"), (1 << 20, "fault")])
    def test_disk(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, state: str) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 41, 0, free))

        assert checks.check_disk(tmp_path).state == state

    @pytest.mark.parametrize(("seconds", "state"), [(0.001, "ok"), (0.05, "warning")])
    def test_flush(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float, state: str) -> None:
        monkeypatch.setattr(checks, "_flush_seconds", lambda _: seconds)

        found = checks.check_flush(tmp_path)

        assert found.state == state
        assert f"{seconds * 1000:.2f} ms" in found.finding

    def test_a_folder_that_can_be_written_is_left_as_it_was(self, tmp_path: Path) -> None:
        assert checks.check_folder(tmp_path / "not/yet").state == "ok"
        assert list(tmp_path.iterdir()) == []

    def test_a_check_that_breaks_is_a_finding(self) -> None:
        def broken() -> checks.Check:
            raise PermissionError(13, "Permission denied")

        found = checks._run("data directory", broken)

        assert (found.name, found.state) == ("data directory", "fault")
        assert "Permission denied" in found.finding

    @pytest.mark.parametrize(
        ("code", "stderr", "state", "words"),
        [
            (0, "", "ok", "OpenCASCADE loads"),
            (1, "...\nModuleNotFoundError: No module named 'OCP'", "fault", "pip install 'tempa[solid]'"),
            (-11, "", "fault", "exit code -11"),
        ],
    )
    def test_kernel(
        self, monkeypatch: pytest.MonkeyPatch, code: int, stderr: str, state: str, words: str
    ) -> None:
        ended: Any = subprocess.CompletedProcess([], code, "", stderr)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)

        found = checks.check_kernel()

        assert found.state == state
        assert words in found.finding

    @pytest.mark.parametrize(("alive", "state"), [(True, "ok"), (False, "warning")])
    def test_server(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alive: object, state: str) -> None:
        monkeypatch.setenv("TEMPA_URL", "http://127.0.0.1:9")
        monkeypatch.setattr(connect, "answers", lambda _: alive)

        assert checks.check_server().state == state

    def test_no_server_is_no_fault(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.delenv("TEMPA_URL", raising=False)

        assert checks.check_server().state == "ok"

    @pytest.mark.parametrize("check", [checks.check_python, checks.check_sqlite, checks.check_pycurl])
    def test_this_machine(self, check: Any) -> None:
        assert check().state == "ok"


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("warning", 0), ("fault", 1)])
def test_only_a_fault_is_an_error(
    tempa: Terminal, monkeypatch: pytest.MonkeyPatch, state: checks.State, code: int
) -> None:
    monkeypatch.setattr(checks, "run_checks", lambda *_: [checks.Check("disk", state, "found")])

    result = tempa.run("doctor")

    assert result.exit_code == code
    document = json.loads(result.stdout)
    assert document["checks"] == [{"name": "disk", "state": state, "finding": "found"}]
    assert document["settings"]["server.host"] == {"value": "127.0.0.1", "source": "default"}


def test_people_see_what_differs_from_the_defaults(tempa: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "run_checks", lambda *_: [checks.Check("disk", "ok", "78 GiB free")])
    monkeypatch.setenv("TEMPA_WORKER__SLOTS", "3")

    shown = tempa.show("doctor").stdout

    assert "TEMPA_WORKER__SLOTS" in shown
    assert "78 GiB free" in shown
    assert "server.host" not in shown
    assert "server.host" in tempa.show("doctor", "--all").stdout
