"""Resolves every dependency of Tempa anew and writes constraints.txt.

pip alone does it: a dry run reports what it would install into an empty environment. The report
knows where each file came from; only names and versions are kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# What Tempa was tested with: one version of everything that any extra needs, for Python {python}.
# No addresses and no hashes: fetch it from wherever you fetch packages (docs/decisions/0006).
# Remade by `make constraints`; never edited.
"""


def resolve(root: Path) -> list[Mapping[str, Any]]:
    """What pip would install into an empty environment for Tempa with all its extras."""
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    dry_run = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", *dry_run, "--editable", f"{root}[{','.join(extras)}]"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    installs: list[Mapping[str, Any]] = json.loads(pip.stdout)["install"]
    return installs


def pins(installs: Iterable[Mapping[str, Any]]) -> list[str]:
    """`name==version` for each package of the report but Tempa itself, names normalised as by PEP 503."""
    named = (install["metadata"] for install in installs)
    versions = {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in named}
    return [f"{name}=={version}" for name, version in sorted(versions.items()) if name != "tempa"]


if __name__ == "__main__":
    python = ".".join(map(str, sys.version_info[:2]))
    lines = [*HEADER.format(python=python).splitlines(), *pins(resolve(ROOT))]
    (ROOT / "constraints.txt").write_text("\n".join(lines) + "\n")
