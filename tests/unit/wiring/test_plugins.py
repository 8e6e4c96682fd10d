"""Engines come in by entry points, with the switches they can take."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tempa.core.errors import TempaError
from tempa.wiring import plugins
from tempa.wiring.environment import ENGINE_GROUP
from tempa.wiring.settings import EngineSettings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tempa.jobs.ports import Engine


@dataclass(frozen=True)
class Forked:
    """Runs in forks of our own interpreter: knows no `python`."""

    timeout_seconds: float = 1.0
    memory_bytes: int = 1 << 30
    life_cycle: Literal["fork"] = "fork"


@dataclass(frozen=True)
class Spawned:
    """Runs in an interpreter of its own."""

    timeout_seconds: float = 1.0
    memory_bytes: int = 1 << 30
    python: str | None = None
    life_cycle: Literal["spawn"] = "spawn"


@dataclass(frozen=True)
class Resident:
    """Keeps a process, unless it has none to keep."""

    timeout_seconds: float = 1.0
    memory_bytes: int = 1 << 30
    python: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    life_cycle: Literal["resident"] = "resident"

    def __post_init__(self) -> None:
        if "odd" in self.options:
            raise ValueError("odd: is no option")

    def unfit(self) -> TempaError | None:
        return None if self.options.get("checkout") else TempaError("MODEL_NOT_INSTALLED", "No checkout.")


class Broken:
    def __init__(self, **_: Any) -> None:
        raise ImportError("no kernel")


def read(switches: Mapping[str, Any]) -> dict[str, EngineSettings]:
    return {name: EngineSettings(**given) for name, given in switches.items()}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Engine]]:
    """Loads the engines above, with some switches."""
    installed = [
        EntryPoint(name, f"{__name__}:{kind.__name__}", ENGINE_GROUP)
        for name, kind in {
            "forked": Forked,
            "spawned": Spawned,
            "resident": Resident,
            "broken": Broken,
        }.items()
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: installed)
    return lambda **switches: plugins.load_engines(read(switches))


def test_an_engine_is_made_with_the_limits_that_are_set(load: Callable[..., dict[str, Any]]) -> None:
    engines = load(forked={"timeout_seconds": 7.5})

    assert engines["forked"] == Forked(timeout_seconds=7.5)
    assert engines["spawned"] == Spawned()


def test_what_is_switched_off_or_cannot_be_loaded_is_not_offered(load: Callable[..., dict[str, Any]]) -> None:
    assert load(spawned={"enabled": False}).keys() == {"forked"}


def test_an_engine_with_an_interpreter_of_its_own_is_told_which(load: Callable[..., dict[str, Any]]) -> None:
    engines = load(spawned={"python": sys.executable, "timeout_seconds": 3.0})

    assert engines["spawned"] == Spawned(timeout_seconds=3.0, python=sys.executable)


def test_an_engine_that_runs_in_our_forks_refuses_an_interpreter(load: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(SettingsError, match=r"engines\.forked\.python: .* leave this setting out"):
        load(forked={"python": sys.executable})


def test_an_interpreter_that_is_not_there_is_told(load: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(SettingsError, match=r"engines\.spawned\.python: /no/python is no program"):
        load(spawned={"python": "/no/python"})


def test_an_engine_that_cannot_run_here_is_not_offered_and_says_why(
    load: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    assert "resident" not in load(resident={"options": {"device": "cpu"}})
    assert "engine resident is not offered: No checkout." in caplog.messages
    assert plugins.withheld_engines({})["resident"].code == "MODEL_NOT_INSTALLED"


def test_an_engine_gets_the_options_that_are_set(load: Callable[..., dict[str, Any]]) -> None:
    engines = load(resident={"options": {"checkout": "/srv/model"}})

    assert engines["resident"].options == {"checkout": "/srv/model"}
    assert plugins.withheld_engines(read({"resident": {"options": {"checkout": "/srv/model"}}})) == {}


def test_options_that_an_engine_does_not_know_are_told(load: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(SettingsError, match=r"engines\.resident\.options: odd: is no option"):
        load(resident={"options": {"odd": 1}})


def test_an_engine_without_options_refuses_them(load: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(SettingsError, match=r"engines\.forked\.options: .* leave this setting out"):
        load(forked={"options": {}})
