"""What holds a server together: roles that are started again, what may be called, how many may come."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tempa.wiring import roles, server
from tempa.wiring.open_files import connections_within
from tempa.wiring.settings import load_settings


class Breaking:
    """A role that breaks at its first run."""

    name = "breaking"

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, stop: asyncio.Event) -> None:
        self.runs += 1
        if self.runs == 1:
            raise ValueError("broken")
        stop.set()


async def test_a_role_that_breaks_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "_RESTART_SECONDS", 0.0)
    role = Breaking()
    await asyncio.wait_for(roles.run_roles([role], asyncio.Event()), 5)
    assert role.runs == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_a_server_on_loopback_may_call_loopback(host: str) -> None:
    assert server._loopback_networks(host) == ("127.0.0.0/8", "::1/128")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", ""])  # noqa: S104
def test_no_other_server_may(host: str) -> None:
    assert server._loopback_networks(host) == ()


def test_the_server_may_open_as_many_files_as_it_is_allowed_to() -> None:
    """In a process of its own: what is lowered here cannot be raised again."""
    script = (
        "import resource\n"
        "from tempa.wiring.open_files import raise_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 700))\n"
        "assert raise_limit() == 700 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n"
        "assert raise_limit() == 700\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


@pytest.mark.parametrize(
    ("files", "wanted", "connections"),
    [(1 << 20, 4096, 4096), (1024, 4096, 128), (9984, 4096, 4096), (9982, 4096, 4095), (4, 4096, 1)],
)
def test_connections_leave_files_for_everything_else(files: int, wanted: int, connections: int) -> None:
    assert connections_within(files, wanted, deliveries=1024) == connections


async def test_the_server_is_held_to_its_bounds(tmp_path: Path) -> None:
    """Told from outside: the cap, a head without an end, and what becomes of those who do not read."""
    settings = load_settings(environment={}, flags={"server.port": 0, "server.connections_max": 16})
    ready: asyncio.Future[server.Ready] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve(settings, tmp_path, None, ready.set_result))
    async with asyncio.timeout(30):
        port = int(str((await ready).url).rpartition(":")[2])
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(17)]
        assert b"503 Service Unavailable" in await lines[-1][0].readline()
        lines[0][1].write(b"GET /livez HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000)
        assert b"431 Request Header Fields Too Large" in await lines[0][0].readline()
        assert accepted_timeout(port) == 60_000
        for _, writer in lines:
            writer.close()
            await writer.wait_closed()
        os.kill(os.getpid(), signal.SIGTERM)
        await serving


def accepted_timeout(port: int) -> int:
    """`TCP_USER_TIMEOUT` of a socket that this process has accepted at `port`, in milliseconds."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(descriptor.name))) as held:
            if held.family == socket.AF_INET and held.getsockname()[1] == port and held.getpeername():
                return held.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    raise AssertionError("no connection is open")


def test_sigterm_while_it_starts_ends_it_in_good_order(tmp_path: Path) -> None:
    """Held up where it opens its data: by then it must have been told that SIGTERM means stop."""
    script = (
        "import asyncio, os, signal, pathlib\n"
        "from tempa.wiring import embedded, server, settings\n"
        "real = embedded.load_credentials\n"
        "def slow(folder):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return real(folder)\n"
        "embedded.load_credentials = slow\n"
        "loaded = settings.load_settings(flags={'server.port': 0})\n"
        f"asyncio.run(server.serve(loaded, pathlib.Path({str(tmp_path)!r}), None, lambda ready: None))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False, env={**os.environ})
    assert ended.returncode == 0
    assert ended.returncode != -signal.SIGTERM
    assert not (tmp_path / "ready.json").exists()


async def test_a_ready_file_that_cannot_be_written_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ready file's folder"):
        await server.serve(
            load_settings(environment={}), tmp_path / "data", tmp_path / "no" / "ready.json", lambda _: None
        )
    assert not (tmp_path / "data").exists()


async def test_ready_files_are_there_while_it_serves_and_never_say_what_a_dead_process_said(
    tmp_path: Path,
) -> None:
    """The named one may lie in a data directory that is not there yet."""
    data, elsewhere = tmp_path / "data", tmp_path / "ready"
    for named in (data / "named.json", elsewhere):
        for path in (data / "ready.json", named):
            if path.parent.is_dir():
                path.write_text('{"pid": 1}')
        settings = load_settings(environment={}, flags={"server.port": 0})
        ready: asyncio.Future[server.Ready] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(server.serve(settings, data, named, ready.set_result))
        async with asyncio.timeout(30):
            url = (await ready).url
            said = [json.loads(path.read_text())["url"] for path in (data / "ready.json", named)]
            os.kill(os.getpid(), signal.SIGTERM)
            await serving

        assert said == [url, url]
        assert not any(path.exists() for path in (data / "ready.json", named))
