"""What a process prints: kept out of the server's own output, bounded, and read back when it dies."""

from __future__ import annotations

import os
import re
import tempfile
from fcntl import F_GETFL, F_SETFL, fcntl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL_BYTES = 4096
_FILE_BYTES_MAX = 1024 * 1024
# OCCT colours its banners; a client's terminal is not ours to steer.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


class Output:
    """A file without a name that is a process's stdout and stderr.

    Nothing is left of it when everyone who holds it is dead. A pipe would need a reader at all times,
    or would stop the kernel in the middle of a print.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed in close()
        # Appending: the writer goes on at the new end after `trim`. The flag is the open file's, so
        # the process that inherits the descriptor has it too.
        fcntl(self._file, F_SETFL, fcntl(self._file, F_GETFL) | os.O_APPEND)
        self._before = b""

    def fileno(self) -> int:
        """The descriptor to give to the process."""
        return self._file.fileno()

    def trim(self) -> None:
        """Give the disk back if too much was printed; the tail stays."""
        if os.fstat(self.fileno()).st_size > _FILE_BYTES_MAX:
            self._before = self._raw_tail()
            os.ftruncate(self.fileno(), 0)

    def tail(self) -> str:
        """The last `TAIL_BYTES` as plain text: no colours, no control characters but line breaks."""
        return _CONTROL.sub("", self._raw_tail().decode(errors="replace")).strip()

    def _raw_tail(self) -> bytes:
        size = os.fstat(self.fileno()).st_size
        text = os.pread(self.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES))
        return (self._before + text)[-TAIL_BYTES:]

    def close(self) -> None:
        """Close the host's descriptor."""
        self._file.close()
