"""How much memory a process holds, read cheaply."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """`size_bytes` of address space, of which `rss_bytes` are in memory."""

    size_bytes: int
    rss_bytes: int


class Memory:
    """Reads `/proc/<pid>/statm` through one open descriptor.

    The descriptor belongs to the process and not to its number: after its death it reads nothing,
    even if the number is given to another process. PSS would divide what is shared with the zygote,
    but the kernel walks every page table to find it; statm is two counters.

    Raises:
        FileNotFoundError: there is no such process.
    """

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/statm").open("rb", buffering=0)  # noqa: SIM115 - closed in close()

    def read(self) -> MemoryReading | None:
        """What the process holds now; None when it is dead."""
        try:
            text = os.pread(self._file.fileno(), 128, 0)
        except ProcessLookupError:
            return None
        size, resident = (int(word) * _PAGE_BYTES for word in text.split()[:2])
        return MemoryReading(size, resident) if size else None

    def close(self) -> None:
        """Close the descriptor. May be called again."""
        self._file.close()
