"""Time. The only room where Tempa reads a clock or sleeps, so that tests can hold time still."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Clock(Protocol):
    """`now` for what people read and what outlives a process, `monotonic` for leases and durations."""

    def now(self) -> datetime: ...  # aware, UTC, whole milliseconds
    def monotonic(self) -> float: ...  # seconds; never goes back while the machine is up
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The wall clock, cut to the millisecond that the store and the wire keep."""
        return from_ms(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC: the same for every process since the machine booted."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def from_ms(milliseconds: int) -> datetime:
    """Unix milliseconds as an aware UTC datetime, without going through a float."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def to_ms(at: datetime) -> int:
    """Unix milliseconds, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def rfc3339(at: datetime) -> str:
    """RFC 3339 in UTC with `Z` and milliseconds: the one spelling of time on the wire."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
