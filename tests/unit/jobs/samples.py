"""Small values for the tests of this room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tempa.jobs.model import Job, Request, Status, Usage

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


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
