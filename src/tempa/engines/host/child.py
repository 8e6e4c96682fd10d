"""The life of a child: one attempt, from the fork to `os._exit`."""

from __future__ import annotations

import errno
import gc
import os
import resource
import select
import signal
import socket
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tempa.core.errors import CODES, TempaError
from tempa.engines.host import confine
from tempa.engines.host.control_line import receive_with_descriptor
from tempa.engines.host.protocol import Done, Fault, Frames, Raised, Stage, Task, frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.jobs.ports import Report, Runner

_TRACE_CHARACTERS = 32_768
_RECEIVE_BYTES = 65_536
_KIB = 1024
_REHEARSAL_SECONDS = 5.0
_STAGE_INTERVAL_SECONDS = 0.05
# Full, over the quota, no room for a file so large, broken, or read-only since it broke: no fault of the
# request nor of ours.
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
# Made beforehand: when it is needed there is no memory to make it.
_NO_MEMORY = frame(
    Raised(
        code="OUT_OF_MEMORY",
        message=CODES["OUT_OF_MEMORY"].meaning,
        retryable=CODES["OUT_OF_MEMORY"].retryable,
        hint=CODES["OUT_OF_MEMORY"].hint,
        detail={},
        wall_seconds=None,
    )
)


def live(runner: Runner, zygote: int, channel: int) -> NoReturn:
    """Do the one attempt that comes over `channel`, and end the process. To be called after a fork.

    The task may be long in coming: a child is forked ahead of it.

    Returning, or an exception that gets out, would run the zygote's loop a second time.
    """
    status = 1
    try:
        confine.lead_own_group()
        confine.die_with_parent(zygote)
        confine.restore_signals()
        confine.go_last()
        _attempt(runner, socket.socket(fileno=channel))
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
    finally:
        os._exit(status)


def _attempt(runner: Runner, channel: socket.socket) -> None:
    _rehearse(runner, channel)
    task = receive(channel)
    if task is None:  # the host gave up, or is gone
        return
    gc.enable()  # off since the zygote's start; its objects are frozen and cost nothing here
    serve(runner, task, channel, confine.limit)


def serve(runner: Runner, task: Task, channel: socket.socket, limit: Callable[[Task], None]) -> None:
    """Run an attempt under `limit`, and say over `channel` what came of it."""
    started = time.monotonic()
    last_word = _answer(runner, task, _Reporter(channel), started, limit)
    confine.flush_output()
    channel.sendall(last_word)


def _rehearse(runner: Runner, channel: socket.socket) -> None:
    """While there is no task yet: what a first run has to touch is then in place (19.8 -> 15.3 ms).

    One that takes long ends this child, which costs nobody an attempt.
    """
    rehearse = getattr(runner, "rehearse", None)
    if rehearse is None or select.select([channel], [], [], 0)[0]:
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _REHEARSAL_SECONDS)
    try:
        rehearse()
    except Exception:  # noqa: BLE001 - a rehearsal is no attempt: the real one will say what is wrong
        traceback.print_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def receive(channel: socket.socket) -> Task | None:
    """The task; from its first byte on this process prints to the output file that came with it."""
    frames = Frames()
    data, output = receive_with_descriptor(channel, _RECEIVE_BYTES)
    if output is not None:
        confine.print_to(output)
        os.close(output)
    while data:
        for message in frames.feed(data):
            assert isinstance(message, Task)
            return message
        data = channel.recv(_RECEIVE_BYTES)
    return None


def _answer(
    runner: Runner, task: Task, progress: _Reporter, started: float, limit: Callable[[Task], None]
) -> bytes:
    try:
        return _run(runner, task, progress, started, limit)
    except BaseException:  # noqa: BLE001 - SystemExit too: an engine does not decide how a child ends
        trace = traceback.format_exc()
        return frame(Fault(trace[-_TRACE_CHARACTERS:], time.monotonic() - started))


def _run(
    runner: Runner, task: Task, progress: _Reporter, started: float, limit: Callable[[Task], None]
) -> bytes:
    try:
        limit(task)
        os.chdir(task.folder)
        report = runner.run(task.work, Path(task.folder), progress)
        return frame(_done(report, time.monotonic() - started))
    except MemoryError:
        return _NO_MEMORY
    except TempaError as error:
        return frame(_raised(error, time.monotonic() - started))
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        failure = TempaError("ARTIFACT_STORE_FAILED", detail={"reason": os.strerror(error.errno)})
        return frame(_raised(failure, time.monotonic() - started))


def _done(report: Report, wall_seconds: float) -> Done:
    for made in report.files:
        if Path(made.name).name != made.name or not Path(made.name).is_file():
            raise FileNotFoundError(f"reported, but not written into the folder: {made.name}")
    files = [
        {
            "name": made.name,
            "role": made.role,
            "file_format": made.file_format,
            "media_type": made.media_type,
        }
        for made in report.files
    ]
    return Done(
        files=files,
        measurements=dict(report.measurements),
        wall_seconds=wall_seconds,
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB,
        alone=confine.alone(),
    )


def _raised(error: TempaError, wall_seconds: float) -> Raised:
    return Raised(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        hint=error.hint,
        detail=error.detail,
        wall_seconds=wall_seconds,
    )


class _Reporter:
    """The engine's `Progress`: every new stage is sent, fractions of one stage at most 20 a second.

    An engine may call it in its innermost loop.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._stage: str | None = None
        self._next = 0.0

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        """Tell the host."""
        now = time.monotonic()
        if stage == self._stage and now < self._next:
            return
        self._channel.sendall(frame(Stage(stage, fraction)))
        self._stage = stage
        self._next = now + _STAGE_INTERVAL_SECONDS
