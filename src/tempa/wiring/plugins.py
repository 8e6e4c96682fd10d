"""Plug-ins come in by entry points; the built-ins use the same door."""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from tempa.wiring.environment import ENGINE_GROUP
from tempa.wiring.settings import EngineSettings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint

    from tempa.jobs.ports import Engine

_logger = logging.getLogger(__name__)


def load_engines(settings: Mapping[str, EngineSettings]) -> dict[str, Engine]:
    """Every enabled engine of the group `tempa.engines`, by name.

    An entry point is a callable that takes `timeout_seconds` and `memory_bytes` (either may be
    absent), and `python` if it runs in an interpreter of its own; it returns an `Engine`. One that
    cannot be loaded is left out, and said so.

    Raises `SettingsError` for a `python` that cannot be used.
    """
    engines: dict[str, Engine] = {}
    for entry in entry_points(group=ENGINE_GROUP):
        switches = settings.get(entry.name, EngineSettings())
        if not switches.enabled:
            continue
        try:
            engines[entry.name] = _load(entry, switches)
        except SettingsError:
            raise
        except Exception:
            _logger.exception("engine %s cannot be loaded and is not offered", entry.name)
    return engines


def _load(entry: EntryPoint, switches: EngineSettings) -> Engine:
    limits: dict[str, Any] = switches.model_dump(exclude={"enabled", "python"}, exclude_none=True)
    make: Callable[..., Engine] = entry.load()
    engine = make(**limits)
    if switches.python is None:
        return engine
    _check_python(entry.name, engine, switches.python)
    return make(**limits, python=switches.python)


def _check_python(name: str, engine: Engine, python: str) -> None:
    setting = f"engines.{name}.python"
    if engine.life_cycle == "fork":
        raise SettingsError(
            f"{setting}: {name} runs in forks of the server's own interpreter; leave this setting out"
        )
    if not os.access(python, os.X_OK):
        raise SettingsError(f"{setting}: {python} is no program that can be run here")
