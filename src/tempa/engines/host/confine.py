"""What a process does to itself before it runs code that may go wild. Linux."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.engines.host.protocol import Task

_PR_SET_PDEATHSIG = 1
# Between SIGXCPU, which tells what happened, and SIGKILL, which a handler cannot catch.
_CPU_GRACE_SECONDS = 5
_OOM_SCORE = "1000"
# Kernels take every core there is for seconds; who answers requests and beats goes first.
_NICENESS = 5

# Loaded at import, that is in the zygote: a forked child should not start by opening libraries.
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """SIGKILL this process when its parent dies, and end now if that has happened already.

    The kernel means the parent's thread; host and zygote both fork from their one main thread.
    """
    _set_death_signal(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Undo `die_with_parent`."""
    _set_death_signal(0)


def _set_death_signal(number: int) -> None:
    if _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def lead_own_group(pid: int = 0) -> None:
    """Make a process the leader of its own group. Child and zygote both call it: who is first wins."""
    with contextlib.suppress(PermissionError, ProcessLookupError):  # it is done, or the child is gone
        os.setpgid(pid, pid)


def alone() -> bool:
    """Whether nothing works beside this thread: no other thread, and no process was ever started.

    One that was started may have left children behind that nobody knows.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        waited_for = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        return waited_for == 0 and len(list(Path("/proc/self/task").iterdir())) == 1
    return False


def restore_signals() -> None:
    """Undo every handler set from Python, and every ignored signal but Python's own two.

    SIGPIPE and SIGXFSZ stay ignored: a broken pipe and a file that grew too large are then errors
    that an engine can name, not a death.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def print_to(output: int) -> None:
    """Make an open file this process's stdout and stderr."""
    os.dup2(output, 1)
    os.dup2(output, 2)


def flush_output() -> None:
    """Flush what C code still holds of every open file: `os._exit` does not."""
    _libc.fflush(None)


def limit(task: Task) -> None:
    """Set the kernel's limits on this process and what it starts. They can only be lowered."""
    limit_files(task)
    _lower(resource.RLIMIT_CPU, task.cpu_seconds, task.cpu_seconds + _CPU_GRACE_SECONDS)
    _lower(resource.RLIMIT_AS, task.address_space_bytes, task.address_space_bytes)


def limit_files(task: Task) -> None:
    """Those of the limits that a process can keep from one attempt to the next.

    CPU seconds add up over its life, and CUDA reserves more address space than any limit would be.
    """
    _lower(resource.RLIMIT_CORE, 0, 0)  # a core of a loaded kernel is 500 MB and minutes of disk
    _lower(resource.RLIMIT_FSIZE, task.file_bytes, task.file_bytes)


def go_last() -> None:
    """Let others go first where there is not enough for all."""
    os.nice(_NICENESS)
    # When the machine itself runs short, an attempt goes first, not the server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")


def _lower(what: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(what)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))
