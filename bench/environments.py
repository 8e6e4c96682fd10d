"""Installs what is measured beside us into build/bench: never into Tempa's own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
_PATIENCE_SECONDS = 600


class Missing(Exception):  # noqa: N818 - it says what is the case
    """A peer cannot be had here, and why."""


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """An interpreter of its own that has `requirements`, made at the first call and when they change."""
    folder = BUILD / name
    python, installed = folder / "bin" / "python", folder / "installed.json"
    if installed.exists() and json.loads(installed.read_text()) == list(requirements):
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    venv.create(folder, with_pip=True, clear=True)
    install([str(python), "-m", "pip", "install", "--quiet", *requirements], BUILD)
    installed.write_text(json.dumps(requirements))
    return python


def install(command: Sequence[str], folder: Path) -> None:
    """Run an installer. Raises Missing with what it said."""
    told = f"{Path(command[0]).name} cannot install {command[-1]}"
    print(f"installing {' '.join(command[-3:])} ...", file=sys.stderr)
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{told}: {error}") from error
    if ended.returncode != 0:
        raise Missing(f"{told}: {ended.stderr.strip()[-200:]}")
