"""A running child's time and memory, looked at from outside."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tempa.engines.host.memory import Memory
from tempa.engines.host.outcome import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.engines.host.bounds import Bounds

# A kernel touches up to 4 GB a second: it gets at most 100 MB past its limit between two looks.
LOOK_SECONDS = 0.025


class Watch:
    """Calls `on_limit` when the child passes a limit, and `on_look` at every look before that.

    It must be done from outside: a kernel holds the interpreter's lock, so no timer and no handler
    of the child's own would run. What counts is the whole resident set, the same figure that the
    job shows as `peak_rss_bytes`; what the child shares with its zygote is part of it (115 MB of a
    loaded OCCT).
    """

    def __init__(
        self, pid: int, bounds: Bounds, on_limit: Callable[[Verdict], None], on_look: Callable[[], None]
    ) -> None:
        self.peak_rss_bytes = 0
        self.peak_size_bytes = 0
        self._bounds = bounds
        self._on_limit = on_limit
        self._on_look = on_look
        self._memory = Memory(pid)
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.call_later(bounds.timeout_seconds, on_limit, Verdict.TIMEOUT)
        self._next_look = self._loop.call_soon(self._look)

    def _look(self) -> None:
        reading = self._memory.read()
        if reading is None:  # dead; the zygote will say how it died
            return
        self.peak_rss_bytes = max(self.peak_rss_bytes, reading.rss_bytes)
        self.peak_size_bytes = max(self.peak_size_bytes, reading.size_bytes)
        self._on_look()
        if reading.rss_bytes > self._bounds.memory_bytes:
            self._on_limit(Verdict.MEMORY)
        else:
            self._next_look = self._loop.call_later(LOOK_SECONDS, self._look)

    def stop(self) -> None:
        """Look no more; the peaks stay. May be called again."""
        self._deadline.cancel()
        self._next_look.cancel()
        self._memory.close()
