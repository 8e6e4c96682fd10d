"""Hints name commands that work where they are read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tempa.cli.invocation import command_line, example_request
from tempa.testing.seeds import SEED_001

ROOT = Path(__file__).parents[3]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a virtual environment, and we are there; nothing of it is on PATH."""
    folder = tmp_path / "check out/.venv/bin"
    folder.mkdir(parents=True)
    (folder / "tempa").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path / "check out")
    return folder / "tempa"


def test_off_the_path_the_program_goes_by_its_own(script: Path) -> None:
    assert command_line("run", "cad", "a b.json") == ".venv/bin/tempa run cad 'a b.json'"


def test_from_elsewhere_by_its_whole_path(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")

    assert command_line("up") == f"'{script}' up"


def test_on_the_path_by_its_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))

    assert command_line("up") == "tempa up"


def test_another_program_of_that_name_is_not_meant(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tempa").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert command_line("up") == ".venv/bin/tempa up"


def test_without_a_script_the_module_is_run(script: Path) -> None:
    script.unlink()

    assert command_line("up") == ".venv/bin/python -m tempa up"


def test_the_example_is_named_where_it_lies(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert example_request() == "FILE.json"

    monkeypatch.chdir(ROOT)
    assert Path(example_request()).is_file()


def test_the_example_is_the_part_that_the_demo_makes() -> None:
    assert json.loads((ROOT / "examples/flanged-tube.json").read_text()) == SEED_001
