"""How many calls a node may get: a token bucket that also heeds what the node itself says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TokenBucket:
    """`rate_per_second` calls on average, `burst` at once. Belongs to one event loop.

    `clock` gives monotonic seconds. Whoever takes a token owns a moment in the future at which to call, so
    calls leave in the order they were asked for.
    """

    def __init__(
        self, rate_per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        assert rate_per_second > 0
        assert burst >= 1
        self._interval_seconds = 1 / rate_per_second
        self._slack_seconds = (burst - 1) * self._interval_seconds
        self._clock = clock
        self._next = clock()  # when the next call is due, were there no burst
        self._paused_until = clock()

    def take(self, patience_seconds: float) -> tuple[bool, float]:
        """Whether a token was given, and the seconds to wait: until the call, or until asking again."""
        now = self._clock()
        due = max(self._next - self._slack_seconds, self._paused_until, now)
        if due - now > patience_seconds:
            return False, due - now
        self._next = max(self._next, due) + self._interval_seconds
        return True, due - now

    def pause(self, seconds: float) -> None:
        """The node wants no call for so long."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)
