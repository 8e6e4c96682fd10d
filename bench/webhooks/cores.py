"""Who runs where: the sender on one core and what it sends to on another, where there are two."""

from __future__ import annotations

import os

_CORES = sorted(os.sched_getaffinity(0))
SENDER = _CORES[0]
RECEIVER = _CORES[-1]


def pin(core: int) -> None:
    """Keep this process, with the threads it will start, on `core`."""
    os.sched_setaffinity(0, {core})
