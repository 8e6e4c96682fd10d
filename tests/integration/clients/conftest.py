"""Node, with the JavaScript verifier or the official library in it: one process for many questions."""

from __future__ import annotations

import base64
import json
import select
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
VERIFIER = ROOT / "clients/javascript/tempa-webhooks.mjs"
OFFICIAL = "standardwebhooks@1.0.0"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Judge:
    """A process that answers a JSON line to each JSON line."""

    process: subprocess.Popen[str]

    def verdict(
        self, body: bytes, headers: Mapping[str, str], secrets: Sequence[str], **options: Any
    ) -> dict[str, Any]:
        """`{"event": ...}` or `{"reason": ...}`."""
        question = {
            "body": base64.b64encode(body).decode(),
            "headers": headers,
            "secrets": secrets,
            "options": options,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        assert line, "Node gave no verdict"
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture(scope="session")
def node() -> str:
    """The program."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


@pytest.fixture(scope="module")  # a process: other tests look at which there are
def judge(node: str) -> Iterator[Judge]:
    """Our JavaScript verifier."""
    yield from _judge(node, "judge.mjs", VERIFIER)


@pytest.fixture(scope="module")  # a process: other tests look at which there are
def official_judge(node: str, official_folder: Path) -> Iterator[Judge]:
    """The official library."""
    yield from _judge(node, "official.mjs", official_folder / "package.json")


@pytest.fixture(scope="session")
def official_folder() -> Path:
    """Where the official library is installed; kept in build/ from run to run."""
    folder = ROOT / "build" / "standard-webhooks"
    installed = folder / "installed"
    if installed.exists() and installed.read_text() == OFFICIAL:
        return folder
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--no-package-lock", OFFICIAL]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm cannot install {OFFICIAL}: {error}")
    installed.write_text(OFFICIAL)
    return folder


def _judge(node: str, script: str, argument: Path) -> Iterator[Judge]:
    command = [node, "--no-warnings", str(HERE / script), str(argument)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Judge(process)
        process.kill()
