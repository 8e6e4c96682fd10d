"""An engine that does, in a child process, what `work["do"]` names. Never imported by the tests."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import math
import mmap
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.jobs.ports import MadeFile, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tempa.jobs.ports import Progress

_MIB = 1024 * 1024


def load() -> None:
    print("loaded")  # noqa: T201 - must not turn up in an attempt's output, nor in the server's


def run(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    progress(f"begun {os.getpid()}")
    act: Callable[[Mapping[str, Any], Path, Progress], Report | None] = _ACTS[work["do"]]
    return act(work, folder, progress) or Report(files=(), measurements={})


def _make(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    progress("build", 0.25)
    progress("export", 0.75)
    (folder / "model.txt").write_text(work["text"], encoding="utf-8")
    Path("relative.txt").write_text("in the attempt's folder", encoding="utf-8")
    files = tuple(MadeFile(name, "model", "txt", "text/plain") for name in ("model.txt", "relative.txt"))
    return Report(files, {"length": len(work["text"]), "volume": math.pi})


def _leave_open_in_c(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(str(folder / "model.txt").encode(), b"w"))
    libc.fputs(b"buffered", file)
    return Report((MadeFile("model.txt", "model", "txt", "text/plain"),), {})


def _spin_in_c(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    sum(range(10**15))  # one call that holds the interpreter's lock for ever


def _ignore_sigterm(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    progress("deaf")
    _spin_in_c(work, folder, progress)


def _kill_self(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    os.kill(os.getpid(), signal.Signals[work["signal"]])


def _segfault(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    sys.stdout.write("\x1b[31mabout to fall\x1b[0m\n")
    ctypes.CDLL(None).puts(b"said by C")
    ctypes.string_at(0)


def _eat_memory(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    """Grow in steps without end; when the step past the limit begins is on record."""
    limit, page = work["limit_bytes"], resource.getpagesize()
    eaten, step = [], b"x" * (4 * _MIB)
    with (folder / "crossed_at").open("w", encoding="ascii") as record:
        while True:
            rss = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * page
            if rss + len(step) > limit and not record.tell():
                record.write(repr(time.monotonic()))
                record.flush()
            eaten.append(bytearray(step))


def _stay_below(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    eaten = bytearray(b"x" * work["bytes"])
    _until_looked_at()
    return Report((), {"eaten": len(eaten)})


def _reserve_address_space(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    """Take all address space there is, untouched, and then do what a kernel does without."""
    reserved = []
    size = 1024 * _MIB
    while size >= _MIB:
        try:
            reserved.append(mmap.mmap(-1, size))
        except OSError:
            size //= 2
    progress("reserved")
    _until_looked_at()
    os.abort()


def _echo(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report((), {"sha256": hashlib.sha256(work["text"].encode()).hexdigest()})


def _wait_for_word(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report((), {"word": (folder / "word").read_text(encoding="utf-8")})  # a FIFO


def _backtrack(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    re.match("(a+)+$", "a" * 64 + "b")  # holds the lock for longer than the sun will shine


def _until_looked_at() -> None:
    select.select([], [], [], 0.1)  # four looks of the host's watch


def _no_memory(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    bytearray(1 << 60)


def _raise_tempa(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    raise TempaError(
        "FILLET_FAILED", "Too round.", retryable=True, hint="Less.", detail={"feature": "rim", "max": 2.5}
    )


def _raise_value(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    raise ValueError("a secret path: /srv/secret")


def _exit_politely(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    sys.exit(3)


def _exit_at_once(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    os._exit(3)


def _grandchild(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    progress(f"grandchild {sleeper.pid}")
    if work["then"] == "wait":
        sleeper.wait()


def _linger(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    """Report, and then not end."""
    os._exit = lambda status: _spin_in_c(work, folder, progress)  # type: ignore[assignment,return-value]


def _crash_on_leaving(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    os._exit = lambda status: ctypes.string_at(0)  # type: ignore[assignment,return-value]


def _keep_company(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    """Leave something behind that could still write, a thread, a child or a child's child, and stay."""
    _linger(work, folder, progress)
    if work["company"] == "thread":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    elif work["company"] == "process":
        subprocess.Popen(["sleep", "1000"])
    else:
        subprocess.run(["sh", "-c", "sleep 1000 &"], check=True, stdout=subprocess.DEVNULL)


def _print_garbage(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    noise = random.Random(7).randbytes(65_536)
    for _ in range(work["times"]):
        os.write(1, noise)
        os.write(2, noise)
    os.write(1, b"the end")
    if work.get("then") == "abort":
        os.abort()


def _print_until_trimmed(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    """Print 2 MiB, and wait for as long as they all lie there."""
    os.write(1, b"x" * (2 * _MIB))
    while (disk_bytes := os.fstat(1).st_blocks * 512) >= 2 * _MIB:
        _until_looked_at()
    return Report((), {"disk_bytes": disk_bytes})


def _speak_garbage(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    """Trample on the channel as a kernel that went wild in memory might."""
    for descriptor in _sockets():
        os.write(descriptor, bytes.fromhex(work["hex"]))
    _spin_in_c(work, folder, progress)


def _huge_report(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report((), {"text": "x" * work["bytes"]})


def _unwritten(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report((MadeFile(work["name"], "model", "txt", "text/plain"),), {})


def _not_a_number(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    return Report((), {"volume": math.nan})


def _chatter(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    for step in range(work["times"]):
        progress("loop", step / work["times"])


def _look_around(work: Mapping[str, Any], folder: Path, progress: Progress) -> Report:
    limits = {
        name: list(resource.getrlimit(getattr(resource, name)))
        for name in ("RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CORE")
    }
    handled = [
        number.name for number in signal.Signals if signal.getsignal(number) not in (signal.SIG_DFL, None)
    ]
    return Report(
        (),
        {
            "limits": limits,
            "handled": handled,
            "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            "descriptors": _descriptors(),
            "group": os.getpgrp() == os.getpid(),
            "folder": str(Path.cwd()),
            "oom_score": Path("/proc/self/oom_score_adj").read_text(encoding="ascii").strip(),
            "niceness": os.nice(0),
            "settings": [name for name in os.environ if name.startswith("TEMPA_")],
            "threads_variable": os.environ["OPENBLAS_NUM_THREADS"],
            "asyncio": "asyncio" in sys.modules,
            "zygote": os.getppid(),
        },
    )


def _descriptors() -> dict[str, str]:
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists
            found[entry.name] = str(entry.readlink())
    return found


def _sockets() -> list[int]:
    return [int(number) for number, target in _descriptors().items() if target.startswith("socket:")]


def _grow_a_file(work: Mapping[str, Any], folder: Path, progress: Progress) -> None:
    with (folder / "endless").open("wb") as endless:
        endless.truncate(work["bytes"])


_ACTS: dict[str, Any] = {
    act.__name__.removeprefix("_"): act
    for act in (
        _make,
        _leave_open_in_c,
        _spin_in_c,
        _backtrack,
        _echo,
        _wait_for_word,
        _ignore_sigterm,
        _kill_self,
        _segfault,
        _eat_memory,
        _stay_below,
        _reserve_address_space,
        _no_memory,
        _raise_tempa,
        _raise_value,
        _exit_politely,
        _exit_at_once,
        _grandchild,
        _linger,
        _crash_on_leaving,
        _keep_company,
        _print_garbage,
        _print_until_trimmed,
        _speak_garbage,
        _huge_report,
        _unwritten,
        _not_a_number,
        _chatter,
        _look_around,
        _grow_a_file,
    )
}
