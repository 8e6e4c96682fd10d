"""Plug-ins come in by entry points; the built-ins use the same door."""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from tempa.jobs.ports import Housed
from tempa.wiring.environment import ENGINE_GROUP
from tempa.wiring.settings import EngineSettings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.metadata import EntryPoint

    from tempa.core.errors import TempaError
    from tempa.jobs.ports import Engine

_logger = logging.getLogger(__name__)


def load_engines(settings: Mapping[str, EngineSettings]) -> dict[str, Engine]:
    """Every enabled engine of the group `tempa.engines` that can run here, by name.

    An entry point is a callable that takes `timeout_seconds` and `memory_bytes` (either may be
    absent), `python` if it runs in an interpreter of its own, and `options` if it has a field of that name;
    it returns an `Engine`. One that cannot be loaded or cannot run is left out, and said so.

    Raises `SettingsError` for a `python` or for `options` that cannot be used.
    """
    engines: dict[str, Engine] = {}
    for name, engine in _enabled(settings):
        reason = engine.unfit() if isinstance(engine, Housed) else None
        if reason is None:
            engines[name] = engine
        else:  # one that nobody has set up is no news
            level = logging.WARNING if name in settings else logging.INFO
            _logger.log(level, "engine %s is not offered: %s", name, reason.message)
    return engines


def withheld_engines(settings: Mapping[str, EngineSettings]) -> dict[str, TempaError]:
    """Why enabled engines are not offered that could be loaded: MODEL_NOT_INSTALLED and the like, by name."""
    reasons = {name: engine.unfit() for name, engine in _enabled(settings) if isinstance(engine, Housed)}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _enabled(settings: Mapping[str, EngineSettings]) -> Iterator[tuple[str, Engine]]:
    for entry in entry_points(group=ENGINE_GROUP):
        switches = settings.get(entry.name, EngineSettings())
        if not switches.enabled:
            continue
        try:
            engine = _load(entry, switches)
        except SettingsError:
            raise
        except Exception:
            _logger.exception("engine %s cannot be loaded and is not offered", entry.name)
        else:
            yield entry.name, engine


def _load(entry: EntryPoint, switches: EngineSettings) -> Engine:
    limits: dict[str, Any] = switches.model_dump(
        include={"timeout_seconds", "memory_bytes"}, exclude_none=True
    )
    apart: dict[str, Any] = switches.model_dump(include={"python", "options"}, exclude_none=True)
    make: Callable[..., Engine] = entry.load()
    engine = make(**limits)
    if not apart:
        return engine
    if switches.python is not None:
        _check_python(entry.name, engine, switches.python)
    if "options" in apart and not hasattr(engine, "options"):
        raise SettingsError(f"engines.{entry.name}.options: {entry.name} has none; leave this setting out")
    try:
        return make(**limits, **apart)
    except ValueError as error:
        raise SettingsError(f"engines.{entry.name}.options: {error}") from None


def _check_python(name: str, engine: Engine, python: str) -> None:
    setting = f"engines.{name}.python"
    if engine.life_cycle == "fork":
        raise SettingsError(
            f"{setting}: {name} runs in forks of the server's own interpreter; leave this setting out"
        )
    if not os.access(python, os.X_OK):
        raise SettingsError(f"{setting}: {python} is no program that can be run here")
