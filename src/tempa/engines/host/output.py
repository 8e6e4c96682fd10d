"""What a process prints: kept out of the server's own output, bounded, and read back when it dies."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL_BYTES = 4096
_DISK_BYTES_MAX = 1024 * 1024
_BLOCK_BYTES = 4096
_PUNCH_HOLE_KEEP_SIZE = 0x03  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, linux/falloc.h
# OCCT colours its banners; a client's terminal is not ours to steer.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")

_fallocate = ctypes.CDLL(None).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class Output:
    """A file without a name that is a process's stdout and stderr.

    Nothing is left of it when everyone who holds it is dead. A pipe would need a reader at all times,
    or would stop the kernel in the middle of a print.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed in close()
        self._trimmed_bytes = 0

    def fileno(self) -> int:
        """The descriptor to give to the process."""
        return self._file.fileno()

    def trim(self) -> None:
        """Give the disk back that old output takes, if it is much; the tail stays.

        A hole, because a cut would lose what is printed between reading the tail and cutting. Where
        the file system has no holes the child's limit on file sizes holds.
        """
        size = os.fstat(self.fileno()).st_size
        if size - self._trimmed_bytes > _DISK_BYTES_MAX:
            self._trimmed_bytes = (size - TAIL_BYTES) // _BLOCK_BYTES * _BLOCK_BYTES
            _fallocate(self.fileno(), _PUNCH_HOLE_KEEP_SIZE, 0, self._trimmed_bytes)

    def tail(self) -> str:
        """The last `TAIL_BYTES` as plain text: no colours, no control characters but line breaks."""
        start = max(0, os.fstat(self.fileno()).st_size - TAIL_BYTES)
        text = os.pread(self.fileno(), TAIL_BYTES, start).decode(errors="replace")
        return _CONTROL.sub("", text).strip()

    def close(self) -> None:
        """Close the host's descriptor."""
        self._file.close()
