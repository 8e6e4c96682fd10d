"""A server whose processes can be told where to die, on both wirings."""

from __future__ import annotations

import os
import select
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tempa.core.crash import VARIABLE
from tempa.testing.server import Server, StartFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import httpx2

ROLES = "api,deliverer,rescuer,janitor"


@dataclass
class House:
    """One process on SQLite; or on PostgreSQL one with the API, and two workers.

    The first two at most are told to die; the last worker of three lives through all of it, and has to
    get on with what the others leave behind.
    """

    folder: Path
    environment: Mapping[str, str]
    store_url: str | None = None
    processes: list[Server] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.store_url is None:
            self.processes = [self._process("up", "up", "--port", "0")]
        else:
            self.processes = [
                self._process("api", "serve", "--roles", ROLES, "--port", "0"),
                self._process("worker-0", "worker", "--port", "0"),
                self._process("worker-1", "worker", "--port", "0"),
            ]

    def _process(self, name: str, *command: str) -> Server:
        beside = self.folder / f"{name}.log"
        return Server(self.data_dir, log=beside, command=command, ready_file=beside.with_suffix(".json"))

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            _bury(process)

    def __enter__(self) -> Self:
        return self

    @property
    def data_dir(self) -> Path:
        """What all of its processes share."""
        return self.folder / "data"

    @property
    def victims(self) -> Sequence[Server]:
        """Those that die."""
        return self.processes[:2]

    def start(self, crash_at: str | None = None, settings: Mapping[str, str] | None = None) -> bool:
        """Kill the victims, and start all that do not run. False: one died on the way, as it was told."""
        for process in self.victims:
            _bury(process)
        down = [process for process in self.processes if not is_alive(process)]
        for process in down:
            process.environment = self._environment(crash_at if process in self.victims else None, settings)
            process.spawn()
        serving = [self._serves(process, crash_at) for process in down]  # each is waited for
        return all(serving)

    def _environment(self, crash_at: str | None, settings: Mapping[str, str] | None) -> dict[str, str]:
        where = {} if self.store_url is None else {"TEMPA_STORE__URL": self.store_url}
        death = {} if crash_at is None else {VARIABLE: crash_at}
        return {**self.environment, **(settings or {}), **where, **death}

    def _serves(self, process: Server, crash_at: str | None) -> bool:
        try:
            process.wait_until_ready()
        except StartFault:
            if crash_at is None or not has_killed_itself(process):
                raise
            return False
        return True

    def wait_for_death(self, seconds: float) -> bool:
        """Wait until a victim has killed itself. False: none did. Any other end is a fault."""
        with ExitStack() as stack:
            poll = select.poll()
            for process in self.victims:
                if not is_alive(process):
                    _assert_killed(process)
                    return True
                assert process.process
                descriptor = os.pidfd_open(process.process.pid)
                stack.callback(os.close, descriptor)
                poll.register(descriptor, select.POLLIN)
            poll.poll(seconds * 1000)
        dead = [process for process in self.victims if not is_alive(process)]
        for process in dead:
            _assert_killed(process)
        return bool(dead)

    def tell_to_go(self) -> None:
        """SIGTERM to the victims."""
        for process in self.victims:
            assert process.process
            with suppress(ProcessLookupError):
                process.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM to each, one after the other; returns the worst exit status."""
        return max(process.stop() for process in self.processes)

    def http(self) -> httpx2.Client:
        """A client of the API with the first key."""
        return self.processes[0].http()


def _bury(process: Server) -> None:
    """Kill -9, if that has not happened yet; and let go of what it held here."""
    if process.process is not None:
        process.kill()


def is_alive(process: Server) -> bool:
    """Whether it runs."""
    return process.process is not None and process.process.poll() is None


def has_killed_itself(process: Server) -> bool:
    """Whether it has ended by SIGKILL."""
    assert process.process
    return process.process.wait(30) == -signal.SIGKILL


def _assert_killed(process: Server) -> None:
    assert process.process
    assert has_killed_itself(process), f"it ended by itself, with {process.process.returncode}: {process.log}"
