"""What `tempa doctor` says of engines that run under an interpreter of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tempa.core.errors import TempaError
    from tempa.wiring.settings import EngineSettings, Settings

    Finding = tuple[Literal["ok", "warning", "fault"], str]


def look_at_triposplat(settings: Settings) -> Finding:
    """Everything that keeps the model from running, the weights' hashes included: that reads 3.8 GB."""
    switches = settings.engines.get("triposplat")
    if switches is not None and not switches.enabled:
        return "ok", "switched off"
    if switches is None or not (switches.options or {}).get("checkout"):
        return "ok", "not set up; `tempa engine install triposplat --checkout DIR` makes what it needs"
    return _look(switches)


def _look(switches: EngineSettings) -> Finding:
    from pydantic import ValidationError

    from tempa.engines.splat.triposplat.fitness import faults, versions
    from tempa.engines.splat.triposplat.options import Options

    try:
        options = Options.model_validate(switches.options)
    except ValidationError as error:
        return "fault", f"engines.triposplat.options: {error.errors()[0]['msg']}"
    found = list(faults(options, switches.python, whole_files=True))
    if found:
        return "fault", " ".join(["not offered:", *map(_told, found)])
    torch = versions(switches.python or sys.executable)["torch"]
    return "ok", f"torch {torch} on {options.device}; all files are the pinned ones"


def _told(error: TempaError) -> str:
    return " ".join(filter(None, [error.message, error.detail.get("kernel"), error.hint]))
