"""`tempa --help` is quick: it loads nothing that it does not show."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from tempa import __version__

ROOT = Path(__file__).parents[3]
HEAVY = {
    "OCP",
    "alembic",
    "asyncio",
    "fastapi",
    "httpx2",
    "pycurl",
    "pydantic",
    "sqlite3",
    "starlette",
    "uvicorn",
}
SCRIPT = """
import json, sys
from tempa.cli.main import app
try:
    app(["--help"], prog_name="tempa")
except SystemExit as end:
    assert end.code == 0
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_loads_nothing_heavy() -> None:
    loaded = set(json.loads(run("-c", SCRIPT).stderr.splitlines()[-1]))

    assert not loaded & HEAVY


def test_help_takes_less_than_a_third_of_a_second() -> None:
    """Of the processor: on a machine that does other things too the wall clock measures those."""
    spent = []
    for _ in range(3):
        before = processor_seconds()
        run("-m", "tempa", "--help")
        spent.append(processor_seconds() - before)

    assert min(spent) < 0.3


def test_the_module_is_the_command() -> None:
    assert run("-m", "tempa", "--version").stdout == f"tempa {__version__}\n"
