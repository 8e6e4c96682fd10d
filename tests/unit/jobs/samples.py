"""Small values for the tests of this room."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tempa.core.metrics import METRICS
from tempa.jobs.model import Job, Request, Status, Usage

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PATIENCE_SECONDS = 10.0  # for what comes at once, unless it never comes


class Tally:
    """A meter that counts, and knows the table."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        assert labels.keys() == set(METRICS[name].labels)
        self.counted[name] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


def a_request(**changes: Any) -> Request:
    """A request as intake makes it."""
    fields: dict[str, Any] = {
        "engine": "echo",
        "engine_version": "1",
        "kind": "cad",
        "family": "cad_generation",
        "model": "echo",
        "lane": "cpu",
        "work": {"length": 1.0},
    }
    return Request(**(fields | changes))


def a_job(**changes: Any) -> Job:
    """A processing job in its first attempt."""
    fields: dict[str, Any] = {
        "id": "cad_00000000000000000000000000",
        "account": "default",
        "status": Status.PROCESSING,
        "request": a_request(),
        "created_at": NOW,
        "started_at": NOW,
        "completed_at": None,
        "run_at": NOW,
        "deadline_at": None,
        "retained_until": NOW + timedelta(days=30),
        "epoch": 1,
        "crash_count": 0,
        "retry_count": 0,
        "sequence": 2,
        "stage": None,
        "fraction": None,
        "cancel_requested": False,
        "cached": False,
        "result": None,
        "error": None,
        "usage": Usage(),
    }
    return Job(**(fields | changes))
