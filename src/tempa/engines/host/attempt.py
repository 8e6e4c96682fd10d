"""The host's view of one attempt: from the fork it asks for to the child that is reaped."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.engines.host.channel import Channel
from tempa.engines.host.outcome import Ending, Verdict, judge, made_files
from tempa.engines.host.output import Output
from tempa.engines.host.protocol import (
    Done,
    Exited,
    Fault,
    ProtocolError,
    Raised,
    Refused,
    Stage,
    Task,
    frame,
)
from tempa.engines.host.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.engines.host.bounds import Bounds
    from tempa.engines.host.protocol import Message
    from tempa.jobs.ports import Broke, Made, Order

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Lost:
    """The zygote died. `started` tells whether the child had got its task."""

    started: bool


class Attempt:
    """Hears one child and watches it. `ended` gets its result when nothing of it runs any more.

    The task is sent when the host knows the child, not before: so an attempt that was lost earlier
    has done nothing and may be started again.
    """

    def __init__(
        self,
        order: Order,
        bounds: Bounds,
        progress: Callable[[str, float | None], None],
        on_kill: Callable[[int], None],
    ) -> None:
        self.number = next(_numbers)
        self._order = order
        self._bounds = bounds
        self._progress = progress
        self._on_kill = on_kill
        self._task = _task_frame(order, bounds)
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Exited | Refused | Lost] = self._loop.create_future()
        self._pid = 0
        self._pidfd: int | None = None
        self._watch: Watch | None = None
        self._began_at = 0.0
        self._last_word: Done | Raised | Fault | None = None
        self._verdict: Verdict | None = None
        self._output = Output(order.folder.parent)
        self._channel = Channel(self._hear, lambda: self.kill(Verdict.GARBAGE))

    def descriptors(self) -> tuple[int, int]:
        """What the child inherits: its end of the channel, and its output."""
        return self._channel.childs_end.fileno(), self._output.fileno()

    @property
    def begun(self) -> bool:
        """Whether a child is known."""
        return self._pid > 0

    def begin(self, pid: int, pidfd: int) -> None:
        """The child lives: give it its task, and watch it. Its time runs from now."""
        self._pid, self._pidfd = pid, pidfd
        self._began_at = self._loop.time()
        with contextlib.suppress(FileNotFoundError):  # dead already; the zygote will say how
            self._watch = Watch(pid, self._bounds, self.kill, self._output.trim)
        self._channel.send(self._task)

    def _hear(self, message: Message) -> None:
        match message:
            case Stage(stage, fraction):
                self._tell_progress(stage, fraction)
            case Done() | Raised() | Fault() if self._last_word is None:
                if isinstance(message, Done):
                    made_files(message.files)
                self._last_word = message
            case _:
                raise ProtocolError("not a child's word")

    def _tell_progress(self, stage: str, fraction: float | None) -> None:
        try:
            self._progress(stage, fraction)
        except Exception:  # noqa: BLE001 - the caller's fault must not stop the loop's reader
            _log.exception("a progress callback failed", extra={"engine": self._order.engine})

    def kill(self, verdict: Verdict) -> None:
        """Have the child's whole group killed; the first verdict stands.

        `ended` follows when the child is reaped: its memory is free then (the kernel takes some 80 ms a
        GiB for that), and the next attempt may have it.
        """
        if self._verdict is None and not self.ended.done():
            self._verdict = verdict
            self._on_kill(self.number)

    def end(self, how: Exited | Refused | Lost) -> None:
        """Nothing of the child runs any more."""
        if not self.ended.done():
            self._channel.drain()
            self._stop_watching()
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
            os.killpg(self._pid, signal.SIGKILL)
        self._loop.add_reader(self._pidfd, self.end, Lost(started=True))
        self._loop.call_later(patience_seconds, self.end, Lost(started=True))

    def outcome(self) -> Made | Broke:
        """What came of it. To be asked when `ended` says `Exited`, or `Lost` after the start."""
        how = self.ended.result()
        exited = how if isinstance(how, Exited) else None
        watched_rss_bytes = self._watch.peak_rss_bytes if self._watch else 0
        return judge(
            Ending(
                bounds=self._bounds,
                last_word=self._last_word,
                verdict=self._verdict,
                exit_code=exited.exit_code if exited else None,
                cpu_seconds=exited.cpu_seconds if exited else 0.0,
                wall_seconds=exited.wall_seconds if exited else self._loop.time() - self._began_at,
                peak_rss_bytes=exited.peak_rss_bytes if exited else watched_rss_bytes,
                peak_size_bytes=self._watch.peak_size_bytes if self._watch else 0,
                output_tail=self._output.tail(),
                reference=self._log_fault(),
            )
        )

    def _log_fault(self) -> str:
        if not isinstance(self._last_word, Fault):
            return ""
        reference = new_id("log")
        _log.error(
            "an engine raised what it should not",
            extra={
                "engine": self._order.engine,
                "reference": reference,
                "trace": self._last_word.trace,
                "output": self._output.tail(),
            },
        )
        return reference

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def close(self) -> None:
        """Give everything back. To be called when it has ended, or was never asked for."""
        self._stop_watching()
        self._channel.close()
        self._output.close()


def _task_frame(order: Order, bounds: Bounds) -> bytes:
    return frame(
        Task(
            work=dict(order.work),
            folder=str(order.folder),
            address_space_bytes=bounds.address_space_bytes,
            cpu_seconds=bounds.cpu_seconds,
            file_bytes=bounds.file_bytes,
        )
    )
