"""Wake: a doorbell between the parts of Tempa. It makes waiting short; it carries no truth."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from contextlib import AbstractContextManager

EVENTS = "events"  # an event was written and waits to be fanned out
FEED = "feed"  # events got their positions
DELIVERIES = "deliveries"  # a delivery may be due
INBOX = "inbox"  # a payment was heard of and waits to be looked up


def lane_topic(lane: str) -> str:
    """Rung when a job of this lane may be claimed."""
    return f"lane:{lane}"


def job_topic(job_id: str) -> str:
    """Rung when a job's events or progress have grown."""
    return f"job:{job_id}"


def cancel_topic(job_id: str) -> str:
    """Rung when a running job is to be stopped: its client asks for it, or it was ended meanwhile."""
    return f"cancel:{job_id}"


class Bell(Protocol):
    """One listener's ear. A ring between two waits is not lost."""

    async def wait(self, timeout_seconds: float) -> bool: ...  # True: rung, False: time passed


class Wake(Protocol):
    """Ring topics, listen to topics. A lost ring costs latency only: every listener polls too."""

    def ring(self, *topics: str) -> None: ...
    def listen(self, *topics: str) -> AbstractContextManager[Bell]: ...


async def either(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until the first of several waits is over, and drop the others."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait `seconds`, or until `stop`: how a role spaces its rounds."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
