"""Places where a process may be told to die, so that a test can kill it exactly there. Nothing in normal use.

    TEMPA_CRASH_AT="settle.committed:2" tempa up    # kill -9 of itself at the second passage

A label says what has just happened, or is about to: `settle.in_commit` lies inside the transaction,
`settle.committed` behind it. (`admit.in_commit` lies behind it too, where PostgreSQL admits by one
statement.) The same label may stand in two adapters of one port. Each is passed, and died at, in
`tests/scenario/test_crash_points.py`, those of payments in `tests/chaos/test_settlement_kills.py`; kernels
and their zygotes never die here, since they are given none of the server's variables.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "TEMPA_CRASH_AT"

_SIGKILL = 9  # POSIX; `signal` is none of core's business


def crash_points(told: str | None, die: Callable[[], None]) -> Callable[[str], None]:
    """What a crash point calls with its label; `told` is `LABEL`, or `LABEL:PASSAGE` counted from 1.

    Raises ValueError when the passage is no number above 0.
    """
    if not told:
        return _pass
    label, _, passage = told.partition(":")
    left = int(passage or 1)
    if left < 1:
        raise ValueError(f"{VARIABLE}: passages are counted from 1, not {left}")
    return _Trap(label, left, die)


def _pass(label: str) -> None:
    """A passage in normal use: 40 ns."""


class _Trap:
    """Dies at one passage of one label. Passages come from several threads."""

    def __init__(self, label: str, left: int, die: Callable[[], None]) -> None:
        self._label, self._left, self._die = label, left, die
        self._lock = threading.Lock()

    def __call__(self, label: str) -> None:
        if label != self._label:
            return
        with self._lock:
            self._left -= 1
            due = self._left == 0
        if due:
            self._die()


def _die() -> None:
    """No handler, no `finally`, no flush: as the machine's power would end it, but for the page cache."""
    os.kill(os.getpid(), _SIGKILL)


crash_point = crash_points(os.environ.get(VARIABLE), _die)
"""To be called where a crash has to be survived, with that place's label."""
