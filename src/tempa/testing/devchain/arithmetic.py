"""Puts this thread's floating point back in order.

LiteSVM leaves the x87 registers in use after it has run some programs (solders 0.29): they are the MMX
registers too, and nobody empties them. Whatever then computes with long doubles in the same thread gets NaN:
SQLite, which reads its numbers so, found 200.0 not greater than 0. `fesetenv` keeps the registers' tags, so
it doesn't help.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_EMMS_RET = b"\x0f\x77\xc3"


def restore() -> None:
    """To be called in the thread that has run a program, before anything else is computed there."""
    _emptied()()


@cache
def _emptied() -> Callable[[], object]:
    """The processor's own instruction for it (EMMS); other processors have no such registers."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return lambda: None
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_EMMS_RET)
    code = ctypes.c_char.from_buffer(page)  # holds the page for as long as it is held itself
    instruction = ctypes.CFUNCTYPE(None)(ctypes.addressof(code))

    def emptied() -> ctypes.c_char:
        instruction()
        return code

    return emptied
