"""Wake: a doorbell between the parts of Tempa. It makes waiting short; it carries no truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FEED = "feed"
DELIVERIES = "deliveries"


def lane_topic(lane: str) -> str:
    """Rung when a job of this lane may be claimed."""
    return f"lane:{lane}"


def job_topic(job_id: str) -> str:
    """Rung when a job's events or progress have grown."""
    return f"job:{job_id}"


class Bell(Protocol):
    """One listener's ear. A ring between two waits is not lost."""

    async def wait(self, timeout_seconds: float) -> bool: ...  # True: rung, False: time passed


class Wake(Protocol):
    """Ring topics, listen to topics. A lost ring costs latency only: every listener polls too."""

    def ring(self, *topics: str) -> None: ...
    def listen(self, *topics: str) -> AbstractContextManager[Bell]: ...
