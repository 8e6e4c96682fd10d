"""`tempa engine install triposplat`, `tempa doctor` and the settings; a stand-in is what pip would fetch."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tempa.cli import engine_environment
from tempa.cli.doctor_engines import look_at_triposplat
from tempa.cli.engine_environment import Wish, install, toml
from tempa.cli.exits import CommandFault, UsageFault
from tempa.cli.main import app
from tempa.engines.splat.about.triposplat import TripoSplat
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.testing.fake_triposplat import FakeTripoSplat


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, fresh: FakeTripoSplat) -> list[list[str]]:
    """What would be run; making the environment puts the stand-in's interpreter there."""
    seen: list[list[str]] = []

    def do(command: list[str], what: str) -> None:
        seen.append(command)
        if command[1:3] == ["-m", "venv"]:
            (folder := Path(command[3]) / "bin").mkdir(parents=True)
            shutil.copy2(fresh.python, folder / "python")

    monkeypatch.setattr(engine_environment, "_do", do)
    return seen


@pytest.fixture
def wish(fresh: FakeTripoSplat, tmp_path: Path) -> Callable[..., Wish]:
    def wish(**given: Any) -> Wish:
        usual = {"weights": None, "device": "cpu", "index_url": None, "unpublished": True}
        return Wish(fresh.folder / "checkout", folder=tmp_path / "environment", **(usual | given))

    return wish


def test_the_settings_it_gives_are_those_of_an_engine_that_runs(
    wish: Callable[..., Wish], commands: list[list[str]], fresh: FakeTripoSplat
) -> None:
    settings = install(wish())
    assert settings["options"]["pins"] == fresh.options["pins"]
    assert TripoSplat(python=settings["python"], options=settings["options"]).unfit() is None


def test_they_are_read_back_from_the_file(
    wish: Callable[..., Wish], commands: list[list[str]], tmp_path: Path
) -> None:
    settings = install(wish())
    (config := tmp_path / "settings.toml").write_text(toml(settings), encoding="utf-8")
    assert tomllib.loads(toml(settings)) == {"engines": {"triposplat": settings}}
    assert look_at_triposplat(load_settings(config, environment={})) == (
        "ok",
        "torch 0.0+stand-in on cpu; all files are the pinned ones",
    )


def test_torch_and_torchvision_come_together_and_from_where_is_said(
    wish: Callable[..., Wish], commands: list[list[str]]
) -> None:
    install(wish(index_url="https://wheels.example/cpu"))
    _, of_torch, of_tempa = commands
    assert {"torch>=2.6", "torchvision"} <= set(of_torch)
    assert of_torch[of_torch.index("--index-url") + 1] == "https://wheels.example/cpu"
    assert "--index-url" not in of_tempa
    names = {line.partition(">")[0].partition("=")[0] for line in of_tempa}
    assert {"numpy", "numba", "scipy", "pillow", "gaussforge", "pydantic", "rfc8785"} <= names


def test_an_environment_that_is_there_is_not_made_again(
    wish: Callable[..., Wish], commands: list[list[str]]
) -> None:
    install(wish())
    install(wish())
    assert [command[1:3] for command in commands].count(["-m", "venv"]) == 1


def test_weights_that_are_not_there_are_named_before_anything_is_made(
    wish: Callable[..., Wish], commands: list[list[str]], fresh: FakeTripoSplat
) -> None:
    (fresh.folder / "checkout/ckpts/vae/flux2-vae.safetensors").unlink()
    with pytest.raises(UsageFault, match=r"vae/flux2-vae\.safetensors"):
        install(wish())
    assert commands == []


def test_weights_that_are_not_the_published_ones_are_refused(
    wish: Callable[..., Wish], commands: list[list[str]]
) -> None:
    with pytest.raises(UsageFault, match="is not the published file"):
        install(wish(unpublished=False))
    assert commands == []


def test_an_environment_that_does_not_work_is_told_in_its_own_words(
    wish: Callable[..., Wish], commands: list[list[str]], fresh: FakeTripoSplat
) -> None:
    fresh.provoke(torch_error="operator torchvision::nms does not exist")
    with pytest.raises(CommandFault) as raised:
        install(wish())
    assert "RuntimeError: operator torchvision::nms does not exist" in raised.value.outcome.lines


def test_a_pip_that_fails_is_told(wish: Callable[..., Wish], fresh: FakeTripoSplat, tmp_path: Path) -> None:
    """The interpreter is there, and knows no pip."""
    (folder := tmp_path / "environment" / "bin").mkdir(parents=True)
    (python := folder / "python").write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    python.chmod(0o755)
    with pytest.raises(CommandFault, match="torch cannot be installed"):
        install(wish())


def test_the_command_writes_no_file_twice(tmp_path: Path) -> None:
    (there := tmp_path / "settings.toml").touch()
    result = CliRunner().invoke(
        app, ["engine", "install", "triposplat", "--checkout", str(tmp_path), "--save", str(there)]
    )
    assert result.exit_code == 2
    assert "is there already" in result.stderr


def test_doctor_tells_everything_at_once(fresh: FakeTripoSplat, tmp_path: Path) -> None:
    fresh.provoke(torch_error="operator torchvision::nms does not exist")
    (fresh.folder / "checkout/ckpts/vae/flux2-vae.safetensors").unlink()
    data = (path := fresh.folder / "checkout/ckpts/diffusion_models/triposplat_fp16.safetensors").read_bytes()
    path.write_bytes(data[:-1] + b"\1")
    entry = {"python": fresh.python, "options": json.dumps(fresh.options)}
    environment = {f"TEMPA_ENGINES__TRIPOSPLAT__{name.upper()}": value for name, value in entry.items()}
    state, finding = look_at_triposplat(load_settings(environment=environment))
    assert state == "fault"
    for word in ("flux2-vae", "triposplat_fp16", "SHA-256", "torchvision::nms does not exist"):
        assert word in finding


@pytest.mark.parametrize(
    ("switches", "finding"),
    [({"enabled": "false"}, "switched off"), ({}, "not set up")],
    ids=["off", "unset"],
)
def test_doctor_says_that_it_is_not_wanted(switches: dict[str, str], finding: str) -> None:
    environment = {f"TEMPA_ENGINES__TRIPOSPLAT__{name.upper()}": value for name, value in switches.items()}
    state, told = look_at_triposplat(load_settings(environment=environment))
    assert state == "ok"
    assert told.startswith(finding)
