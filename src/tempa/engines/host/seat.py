"""A child as the host holds it: asked for, spoken to, killed, reaped. What it is there for is `attempt`'s."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import select
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.engines.host.channel import Channel
from tempa.engines.host.protocol import Exited, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Lost:
    """The zygote died. `started` tells whether the child could have got its task."""

    started: bool


End = Exited | Refused | Lost


class Seat:
    """The place of one child. `ended` gets its result when nothing of the child runs any more.

    A child waits for its task: it may be forked before there is any, and one that is lost before it
    got any has done nothing.
    """

    def __init__(self, on_kill: Callable[[int], None]) -> None:
        self.number = next(_numbers)
        self.channel = Channel()
        self.pid = 0
        self._on_kill = on_kill
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[End] = self._loop.create_future()
        self._pidfd: int | None = None
        self._on_begin: Callable[[], None] | None = None

    def descriptors(self) -> tuple[int]:
        """What the child inherits: its end of the channel."""
        return (self.channel.childs_end.fileno(),)

    @property
    def begun(self) -> bool:
        """Whether a child is known."""
        return self.pid > 0

    @property
    def waits(self) -> bool:
        """Whether a child is on its way, or there and alive."""
        return not self.ended.done() and (self._pidfd is None or not is_dead(self._pidfd))

    def begin(self, pid: int, pidfd: int) -> None:
        """The child lives."""
        self.pid, self._pidfd = pid, pidfd
        if self._on_begin is not None:
            self._on_begin()

    def when_begun(self, call: Callable[[], None]) -> None:
        """Call when the child lives; now, if it does already."""
        if self.begun:
            call()
        else:
            self._on_begin = call

    def kill(self) -> None:
        """Have the child's whole group killed. `ended` follows when it is reaped."""
        if not self.ended.done():
            self._on_kill(self.number)

    def end(self, how: End) -> None:
        """Nothing of the child runs any more."""
        if not self.ended.done():
            self.channel.drain()
            self._let_go()
            self.ended.set_result(how)

    def orphan(self, patience_seconds: float) -> None:
        """The zygote died: kill what it left. A child dies with its zygote, a grandchild does not."""
        if self._pidfd is None:
            self.end(Lost(started=False))
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        # The number could only be someone else's if it had come round within these milliseconds.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._loop.add_reader(self._pidfd, self.end, Lost(started=True))
        self._loop.call_later(patience_seconds, self.end, Lost(started=True))

    def _let_go(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def close(self) -> None:
        """Give everything back. A child that still waits for a task reads the end, and ends."""
        self._let_go()
        self.channel.close()


def is_dead(pidfd: int) -> bool:
    """Whether a process has ended, noticed or not."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
