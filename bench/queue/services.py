"""The servers that systems stand on: each durable, its settings told, on Unix sockets only."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tempa.testing.postgres import running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.testing.postgres import PostgresCluster

POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",  # no checkpoint falls into a measurement of seconds
    "max_connections": "200",
}
_START_SECONDS = 10


class Service(Protocol):
    """Something with fresh, empty places in it."""

    @property
    def settings(self) -> str: ...  # as the table tells them
    @property
    def pid(self) -> int | None: ...  # of the server whose CPU counts; None: there is none
    def fresh(self) -> contextlib.AbstractContextManager[str]: ...  # the URL of an empty place


@dataclass(frozen=True, slots=True)
class Files:
    """No server: a file in a folder of its own."""

    folder: Path
    settings: str = "a file; WAL, synchronous = FULL"
    pid: None = None

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """A path at which there is nothing yet."""
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            yield str(Path(folder) / "tempa.db")
        finally:
            shutil.rmtree(folder)


class Postgres:
    """One cluster for all that use PostgreSQL."""

    _numbers = itertools.count()

    def __init__(self, cluster: PostgresCluster) -> None:
        self.cluster = cluster
        self.settings = "PostgreSQL; " + ", ".join(f"{k}={v}" for k, v in cluster.settings.items())

    @property
    def pid(self) -> int:
        """The postmaster's."""
        return int((self.cluster.folder / "data" / "postmaster.pid").read_text().split()[0])

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """An empty database."""
        name = f"bench_{next(self._numbers)}"
        self.cluster.execute(f"create database {name}")
        self.cluster.execute("checkpoint")
        try:
            yield self.cluster.url(name)
        finally:
            self.cluster.execute(f"drop database {name} with (force)")


@contextlib.contextmanager
def postgres(**settings: str) -> Iterator[Postgres]:
    """A durable cluster, but for what `settings` say."""
    with running_cluster({**POSTGRES_SETTINGS, **settings}) as cluster:
        yield Postgres(cluster)


@dataclass(frozen=True, slots=True)
class Valkey:
    """A server that speaks Redis' protocol, with an append-only file; anew for each use."""

    program: Path
    append_fsync: str
    socket: Path
    process: subprocess.Popen[bytes]

    @property
    def settings(self) -> str:
        """As the table tells them."""
        return f"Valkey; appendonly=yes, appendfsync={self.append_fsync}, maxmemory-policy=noeviction"

    @property
    def pid(self) -> int:
        """The server's."""
        return self.process.pid

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """The socket of the server, which is empty."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(b"FLUSHALL\r\n")
            assert connection.recv(100) == b"+OK\r\n"
        yield str(self.socket)


@contextlib.contextmanager
def valkey(program: Path, append_fsync: str) -> Iterator[Valkey]:
    """A server that listens on a socket, and is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tempa-vk-"))
    path = folder / "socket"
    options = {
        "port": "0",
        "unixsocket": str(path),
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": append_fsync,
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    with subprocess.Popen([program, *given], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
        try:
            _wait_for(path, process)
            yield Valkey(program, append_fsync, path, process)
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _START_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError("the Redis protocol server does not start")
        time.sleep(0.02)
