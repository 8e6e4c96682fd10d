"""A server of one's own for the length of one command: `tempa up` in a child process."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.cli.exits import CommandFault
from tempa.cli.signals import ExitSignals

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.02
_LOG_LINES = 20


class ServerFault(CommandFault):
    """The server did not start, or did not stop as it should."""

    def __init__(self, words: str, log: Path) -> None:
        tail = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
        super().__init__(words, *tail)


@contextmanager
def local_server(folder: Path) -> Iterator[dict[str, Any]]:
    """Serve from `folder`/data until the end of the block, then stop by SIGTERM and wait.

    Gives the ready file's content. SIGTERM and SIGHUP end the block as SystemExit(128 + number): the
    server is in a session of its own, and nobody else would stop it.

    Raises ServerFault if it does not come up, or exits with anything but 0.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready, log = folder / "ready.json", folder / "server.log"
    ready.unlink(missing_ok=True)
    with ExitSignals() as signals:
        process = _start(folder, ready, log)
        try:
            signals.release()
            yield _wait_until_ready(process, ready, log)
            signals.hold()
        finally:
            signals.hold()  # whatever else is heard, stopping comes to its end
            code = _stop(process)
            ready.unlink(missing_ok=True)  # address and key of a server that is gone
    if code != 0:
        raise ServerFault(f"The server did not stop in good order: exit code {code}.", log)


@contextmanager
def passing_server() -> Iterator[dict[str, Any]]:
    """A server whose data is gone afterwards."""
    with ExitSignals() as signals, tempfile.TemporaryDirectory(prefix="tempa-") as folder:
        signals.release()
        try:
            with local_server(Path(folder)) as server:
                yield server
        finally:
            signals.hold()  # the folder goes first


def _start(folder: Path, ready: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tempa", "up", "--port", "0"]
    places = ["--data", str(folder / "data"), "--ready-file", str(ready)]
    with log.open("wb") as output:
        # A session of its own: Ctrl-C is for us, who then stop it in good order.
        return subprocess.Popen(
            [*command, *places],
            stdout=subprocess.DEVNULL,  # tells the key; the ready file does too, for its owner only
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def _wait_until_ready(process: subprocess.Popen[bytes], ready: Path, log: Path) -> dict[str, Any]:
    from tempa.client.discovery import read_ready_file

    deadline = time.monotonic() + _START_SECONDS
    while not (content := read_ready_file(ready)):  # renamed into place: whole or not there
        if process.poll() is not None:
            raise ServerFault(f"The server ended at once: exit code {process.returncode}.", log)
        if time.monotonic() > deadline:
            raise ServerFault(f"The server was not ready within {_START_SECONDS:g} s.", log)
        time.sleep(_LOOK_SECONDS)
    return content


def _stop(process: subprocess.Popen[bytes]) -> int:
    """SIGTERM, as a supervisor does; SIGKILL only if that is not heard."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
