"""One server a directory. Whoever holds the lock knows that every other holder is dead."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path


class DirectoryInUse(Exception):  # noqa: N818 - it says what is the case
    """Another process serves from this data directory. `pid` is None if it left no number."""

    def __init__(self, directory: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(
            f"{directory} is in use by {holder}. One server a directory: stop that one first, "
            "or give this one another directory."
        )
        self.pid = pid


class DirectoryLock:
    """The lock on a data directory, held from construction to `release`, or to the process's end.

    flock and not a file with a number in it: the kernel lets go when the holder dies, however it
    dies. The descriptor is not inheritable, so that a child started by exec (a kernel's zygote)
    that outlives the server does not go on holding it.
    """

    def __init__(self, directory: Path) -> None:
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _read_pid(descriptor)
            os.close(descriptor)
            raise DirectoryInUse(directory, pid) from None
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # a full disk: the number is told to people, the lock is held
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor: int | None = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None
