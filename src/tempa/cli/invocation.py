"""How this program is called from where its user stands: for hints that work as they are printed."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

_EXAMPLE = Path("examples/flanged-tube.json")


def command_line(*arguments: str) -> str:
    """A command to copy: `tempa ...` where PATH leads to this program, else by its path."""
    return " ".join([*_program(), *(shlex.quote(argument) for argument in arguments)])


def example_request() -> str:
    """A request that is there, or the name of a place to put one."""
    return str(_EXAMPLE) if _EXAMPLE.is_file() else "FILE.json"


def _program() -> list[str]:
    script = Path(sys.executable).with_name("tempa")
    found = shutil.which("tempa")
    if found and (not script.exists() or Path(found).samefile(script)):
        return ["tempa"]
    if script.exists():
        return [shlex.quote(_from_here(script))]
    return [shlex.quote(_from_here(Path(sys.executable))), "-m", "tempa"]


def _from_here(path: Path) -> str:
    """Relative below the current folder: `.venv/bin/tempa`. Links are kept, a venv's python is one."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
