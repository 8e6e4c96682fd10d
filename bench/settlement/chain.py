"""A development chain in a process of its own, and payments on it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_START_SECONDS = 30.0
_TIMEOUT_SECONDS = 30.0
FINAL_SLOTS = 33


@dataclass(frozen=True, slots=True)
class Running:
    """`tempa dev chain`, and what its ready file says."""

    ready: Mapping[str, Any]
    control: httpx2.Client

    def act(self, path: str, **body: Any) -> Any:
        """Ask the control plane."""
        answer = self.control.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    def pay(self, asset: str, amount: int, reference: str) -> str:
        """The transaction's signature. The treasury is paid."""
        told = self.act("/pay", to=self.ready["treasury"], asset=asset, amount=amount, reference=reference)
        return str(told["signature"])


@contextlib.contextmanager
def dev_chain(folder: Path, *options: str) -> Iterator[Running]:
    """One that runs inside the `with`."""
    ready_file = folder / "chain.json"
    ready_file.unlink(missing_ok=True)
    ports = ("--port", "0", "--ws-port", "0", "--control-port", "0")
    command = [sys.executable, "-m", "tempa", "dev", "chain", *ports, "--ready-file", str(ready_file)]
    with (folder / "chain.log").open("ab") as log:
        process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
    try:
        _wait(ready_file, process)
        ready = json.loads(ready_file.read_text())
        with httpx2.Client(
            base_url=ready["control_url"], timeout=_TIMEOUT_SECONDS, trust_env=False
        ) as control:
            yield Running(ready, control)
    finally:
        process.kill()
        process.wait()


def _wait(path: Path, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _START_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > ends:
            raise SystemExit("the development chain did not start; see its chain.log")
        time.sleep(0.02)
