"""Engines come in by entry points, with the switches they can take."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tempa.wiring import plugins
from tempa.wiring.environment import ENGINE_GROUP
from tempa.wiring.settings import EngineSettings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Broken:
    def __init__(self, **_: Any) -> None:
        raise ImportError("no kernel")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Engine]]:
    """Loads the engines above, with some switches."""
    installed = [
        EntryPoint(name, f"{__name__}:{kind.__name__}", ENGINE_GROUP)
        for name, kind in {"forked": Forked, "spawned": Spawned, "broken": Broken}.items()
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: installed)
    return lambda **switches: plugins.load_engines(
        {name: EngineSettings(**given) for name, given in switches.items()}
    )


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
