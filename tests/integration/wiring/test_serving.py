"""What holds a server together: roles that are started again, what may be called, what counts as ready."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.wiring import embedded, roles, serving
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.wiring.parts import Parts


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
    assert embedded._loopback_networks(host) == ("127.0.0.0/8", "::1/128")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", ""])  # noqa: S104
def test_no_other_server_may(host: str) -> None:
    assert embedded._loopback_networks(host) == ()


class Store:
    """A store that is there, or is not."""

    def __init__(self, fault: Exception | None) -> None:
        self._fault = fault

    async def job_by_id(self, job_id: str) -> None:
        if self._fault:
            raise self._fault


@pytest.mark.parametrize(
    ("fault", "engines", "told"),
    [
        (None, {"e": 1}, {"store": "ok", "engines": "ok"}),
        (None, {}, {"store": "ok", "engines": "none can be loaded"}),
        (StoreUnavailable(), {"e": 1}, {"store": "StoreUnavailable"}),
    ],
)
async def test_ready_means_that_the_store_answers_and_something_runs(
    fault: Exception | None, engines: dict[str, Any], told: dict[str, str]
) -> None:
    class Some:
        jobs = Store(fault)

    Some.engines = engines  # type: ignore[attr-defined]
    assert await serving._readiness(cast("Parts", Some)) == told


def test_sigterm_while_it_starts_ends_it_in_good_order(tmp_path: Path) -> None:
    """Held up where it opens its data: by then it must have been told that SIGTERM means stop."""
    script = (
        "import asyncio, os, signal, pathlib\n"
        "from tempa.wiring import embedded, settings\n"
        "real = embedded.load_credentials\n"
        "def slow(folder):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return real(folder)\n"
        "embedded.load_credentials = slow\n"
        "loaded = settings.load_settings(flags={'server.port': 0})\n"
        f"asyncio.run(embedded.serve(loaded, pathlib.Path({str(tmp_path)!r}), None, lambda ready: None))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False, env={**os.environ})
    assert ended.returncode == 0
    assert ended.returncode != -signal.SIGTERM
    assert not (tmp_path / "ready.json").exists()


async def test_a_ready_file_that_cannot_be_written_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ready file's folder"):
        await embedded.serve(
            load_settings(environment={}), tmp_path / "data", tmp_path / "no" / "ready.json", lambda _: None
        )
    assert not (tmp_path / "data").exists()
