"""A server of one's own for the length of one command: `tempa up` in a child process."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tempa.cli.exits import CommandFault
from tempa.cli.signals import ExitSignals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOG_LINES = 20


class ServerFault(CommandFault):
    """The server did not start, or did not stop as it should."""

    def __init__(self, words: str, log: Path) -> None:
        tail = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
        super().__init__(words, *tail)


@contextmanager
def local_server(
    folder: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Mapping[str, Any]]:
    """Serve from `folder`/data until the end of the block, then stop by SIGTERM and wait.

    `environment` comes on top of ours.

    Gives the ready file's content. SIGTERM and SIGHUP end the block as SystemExit(128 + number): the
    server is in a session of its own, and nobody else would stop it.

    Raises ServerFault if it does not come up, or exits with anything but 0.
    """
    from tempa.testing.server import Server, StartFault

    log = folder / "server.log"
    log.unlink(missing_ok=True)
    server = Server(folder / "data", environment, log=log)
    with ExitSignals() as signals:
        server.spawn()
        try:
            signals.release()
            yield server.wait_until_ready()
            signals.hold()
        except StartFault as fault:
            raise ServerFault(str(fault), log) from None
        finally:
            signals.hold()  # whatever else is heard, stopping comes to its end
            code = server.stop()
    if code != 0:
        raise ServerFault(f"The server did not stop in good order: exit code {code}.", log)


@contextmanager
def passing_server() -> Iterator[Mapping[str, Any]]:
    """A server whose data is gone afterwards."""
    with ExitSignals() as signals, tempfile.TemporaryDirectory(prefix="tempa-") as folder:
        signals.release()
        try:
            with local_server(Path(folder)) as server:
                yield server
        finally:
            signals.hold()  # the folder goes first
