"""splat-transform under Node 22: from the environment, else by npm into build/, else a visible skip."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TOOL = "@playcanvas/splat-transform@3.7.0"
# It needs Node 22, which few machines have as `node`. The package `node@22` fetches its program by a
# script that npm no longer runs unasked; the package of the program itself needs none.
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")
NODE = f"node-linux-{MACHINE}@22.23.3"
PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SplatTransform:
    """The tool, ready to run."""

    command: tuple[str, ...]

    def __call__(self, *arguments: str | Path) -> str:
        """What it prints. Fails the test if it does not end well."""
        ended = subprocess.run(
            [*self.command, "-w", "-q", "-g", "cpu", *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture(scope="session")
def splat_transform() -> SplatTransform:
    """`TEMPA_SPLAT_TRANSFORM` names its command (such as `node22 .../cli.mjs`); else it is installed."""
    told = os.environ.get("TEMPA_SPLAT_TRANSFORM")
    if told:
        return SplatTransform(tuple(told.split()))
    modules = _installed() / "node_modules"
    program = modules / NODE.partition("@")[0] / "bin/node"
    return SplatTransform((str(program), str(modules / "@playcanvas/splat-transform/bin/cli.mjs")))


def _installed() -> Path:
    """The folder with both packages in it; kept in build/ from run to run."""
    folder = ROOT / "build" / "splat-transform"
    installed = folder / "installed"
    if installed.exists() and installed.read_text() == f"{TOOL} {NODE}":
        return folder
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--no-package-lock", "--ignore-scripts"]
    try:
        subprocess.run([*command, TOOL, NODE], cwd=folder, check=True, capture_output=True, timeout=300)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm cannot install {TOOL}: {error}")
    installed.write_text(f"{TOOL} {NODE}")
    return folder
