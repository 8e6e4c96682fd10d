"""Plug-ins come in by entry points; the built-ins use the same door."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.jobs.ports import Engine
    from tempa.wiring.settings import EngineSettings

_logger = logging.getLogger(__name__)


def load_engines(settings: Mapping[str, EngineSettings]) -> dict[str, Engine]:
    """Every enabled engine of the group `tempa.engines`, by name.

    An entry point is a callable that takes `timeout_seconds` and `memory_bytes` (either may be
    absent) and returns an `Engine`. One that cannot be loaded is left out, and said so.
    """
    engines: dict[str, Engine] = {}
    for entry in entry_points(group="tempa.engines"):
        switches = settings.get(entry.name)
        if switches is not None and not switches.enabled:
            continue
        limits: dict[str, Any] = (
            switches.model_dump(exclude={"enabled"}, exclude_none=True) if switches else {}
        )
        try:
            engines[entry.name] = entry.load()(**limits)
        except Exception:
            _logger.exception("engine %s cannot be loaded and is not offered", entry.name)
    return engines
