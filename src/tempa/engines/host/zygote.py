"""The zygote: a process with the kernel loaded that forks a child for each attempt.

Started by exec, `python -m tempa.engines.host.zygote`, never forked from the server. It stays in one
thread for ever: a forked child of a process that ran one parallel OCCT call hung in 9 of 9 tries.
It ends when its control line does, and takes its children along.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from tempa.core.errors import TempaError
from tempa.engines.host import child, confine, heap
from tempa.engines.host.control_line import ControlLine, close_all
from tempa.engines.host.protocol import Exited, Fork, Forked, Kill, Ready, Refused, Unable

if TYPE_CHECKING:
    from tempa.jobs.ports import Runner

_REASON_CHARACTERS = 2_000
_KIB = 1024


class ThreadStartedError(Exception):
    """The process has more than one thread, so its forks may deadlock."""


@dataclass(frozen=True, slots=True)
class _Child:
    attempt: int
    pid: int
    pidfd: int


class Zygote:
    """Forks on request, kills on request, and reaps at once."""

    def __init__(self, line: ControlLine, runner: Runner) -> None:
        self._pid = os.getpid()
        self._line = line
        self._runner = runner
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(line, selectors.EVENT_READ)

    def serve(self) -> None:
        """Return when the host has hung up or is dead; by then all children are."""
        try:
            while self._turn():
                pass
        finally:
            self._end()

    def _turn(self) -> bool:
        for key, _ in self._selector.select():
            if key.fileobj is not self._line:
                self._reap(key.data)
            elif not self._obey():
                return False
        return True

    def _obey(self) -> bool:
        message, descriptors = self._line.receive()
        match message:
            case Fork(attempt):
                (channel,) = descriptors
                self._fork(attempt, channel)
            case Kill(attempt) if attempt in self._children:
                _kill_group(self._children[attempt].pid)
        return message is not None

    def _fork(self, attempt: int, channel: int) -> None:
        try:
            require_one_thread()
            pid = os.fork()
        except (ThreadStartedError, OSError) as error:
            spoiled = isinstance(error, ThreadStartedError)
            self._line.send(Refused(attempt, spoiled, describe(error)))
        else:
            if pid == 0:
                self._be_child(channel)
            self._adopt(attempt, pid)
        finally:
            os.close(channel)

    def _be_child(self, channel: int) -> NoReturn:
        try:
            # Only what the zygote itself opened: what the engine opened when it was loaded, it needs.
            self._selector.close()
            self._line.close()
            close_all([sibling.pidfd for sibling in self._children.values()])
            child.live(self._runner, self._pid, channel)
        finally:
            os._exit(1)  # whatever went wrong: two processes in the zygote's loop would be worse

    def _adopt(self, attempt: int, pid: int) -> None:
        confine.lead_own_group(pid)
        pidfd = os.pidfd_open(pid)
        self._children[attempt] = born = _Child(attempt, pid, pidfd)
        self._selector.register(pidfd, selectors.EVENT_READ, born)
        self._line.send(Forked(attempt, pid), [pidfd])

    def _reap(self, dead: _Child) -> None:
        # While it is not reaped, its number and its group's belong to nobody else.
        _kill_group(dead.pid)
        _, status, usage = os.wait4(dead.pid, 0)
        self._selector.unregister(dead.pidfd)
        os.close(dead.pidfd)
        del self._children[dead.attempt]
        self._line.send(
            Exited(
                attempt=dead.attempt,
                exit_code=os.waitstatus_to_exitcode(status),
                cpu_seconds=usage.ru_utime + usage.ru_stime,
                peak_rss_bytes=usage.ru_maxrss * _KIB,
            )
        )

    def _end(self) -> None:
        for left in self._children.values():
            _kill_group(left.pid)
        for left in list(self._children.values()):
            with contextlib.suppress(OSError):  # a dead host hears nothing
                self._reap(left)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def require_one_thread() -> None:
    """Ask the kernel, which also knows threads that Python does not.

    Raises:
        ThreadStartedError: there are more.
    """
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1:
        raise ThreadStartedError(f"the engine has {threads} threads before the fork; a child could deadlock")


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]


def unable(error: BaseException) -> Unable:
    """What to tell the host of a failed load: a `TempaError` speaks for itself."""
    if isinstance(error, TempaError):
        return Unable(error.message[:_REASON_CHARACTERS], error.code)
    return Unable(describe(error))


def load(module: str) -> Runner:
    """Import an engine's module and its kernel.

    Raises:
        ThreadStartedError: it left a thread behind.
        BaseException: whatever the module raised.
    """
    runner = cast("Runner", importlib.import_module(module))
    runner.load()
    require_one_thread()
    return runner


def main() -> None:
    """Load the engine, say so, and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--line", type=int, required=True)
    parser.add_argument("--host", type=int, required=True)
    parser.add_argument("--module", required=True)
    arguments = parser.parse_args()
    line = ControlLine(socket.socket(fileno=arguments.line))
    # A service manager that stops the server signals its whole group; when attempts end is for the
    # host to say, by the line.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    confine.die_with_parent(arguments.host)  # while loading, nobody listens to the line
    runner = _load_or_tell(arguments.module, line)
    if runner is not None:
        confine.outlive_parent()
        line.send(Ready(address_space_bytes()))
        Zygote(line, runner).serve()


def _load_or_tell(module: str, line: ControlLine) -> Runner | None:
    gc.disable()  # with freeze, below: children share these pages as long as nothing writes to them
    try:
        runner = load(module)
    except BaseException as error:  # noqa: BLE001 - SystemExit too: the host waits for a word
        traceback.print_exc()
        line.send(unable(error))
        return None
    gc.collect()
    gc.freeze()
    heap.join_pages()
    return runner


def address_space_bytes() -> int:
    """Of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
