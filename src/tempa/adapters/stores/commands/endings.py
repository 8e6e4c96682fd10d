"""What each ending of an attempt writes. Plain functions: the transaction is in attempts.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.event_log import Entry
from tempa.adapters.stores.sql import error_text, result_text
from tempa.core.clock import from_ms
from tempa.jobs import events
from tempa.jobs.model import (
    STEP_OF_ENDING,
    TRANSITIONS,
    Canceled,
    Completed,
    Failed,
    Released,
    Retried,
    Status,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.jobs.model import Ending, Request

OUTCOMES = {
    Completed: "completed",
    Failed: "failed",
    Retried: "retried",
    Canceled: "canceled",
    Released: "released",
}
"""What the attempt's row says of each."""


@dataclass(frozen=True, slots=True)
class Held:
    """What an ending needs of its job, as it stands under the transaction's lock."""

    id: str
    request: Request
    cancel_requested: bool
    work_key: str | None


def held(row: Mapping[str, Any], request: Request) -> Held:
    """A row of `jobs_for_update`."""
    return Held(row["id"], request, bool(row["cancel_requested"]), row["work_key"])


def honour_cancel(job: Held, ending: Ending) -> Ending:
    """An ending that would queue the job again cancels it, if that was asked for meanwhile.

    The worker decides before it sees the wish, and the client was told that it is on its way: only
    the settling transaction sees both. A result that is ready, or an error, stands.
    """
    if job.cancel_requested and isinstance(ending, Retried | Released):
        return Canceled(usage=usage_of(ending), stages=ending.stages)
    return ending


def usage_of(ending: Ending) -> Usage:
    """What the attempt cost; nothing is known of one that was handed back."""
    return Usage() if isinstance(ending, Released) else ending.usage


def code_of(ending: Ending) -> str | None:
    """The error code the attempt ended with."""
    return ending.error.code if isinstance(ending, Failed | Retried) else None


def attempt_columns(ending: Ending) -> dict[str, Any]:
    """The attempt's columns after `ending`."""
    usage = usage_of(ending)
    return {
        "outcome": OUTCOMES[type(ending)],
        "attempt_code": code_of(ending),
        "compute_time_ms": usage.compute_time_ms,
        "peak_rss_bytes": usage.peak_rss_bytes,
    }


def target(ending: Ending) -> tuple[Status, str]:
    """The status the job goes to and the event that tells of it, by the state machine."""
    return TRANSITIONS[Status.PROCESSING, STEP_OF_ENDING[type(ending)]]


def run_at(ending: Ending, now: int) -> int | None:
    """When a job that is queued again is due."""
    delay_seconds = ending.delay_seconds if isinstance(ending, Retried) else 0.0
    status, _ = target(ending)
    return now + round(delay_seconds * 1000) if status is Status.QUEUED else None


def columns(ending: Ending, now: int) -> dict[str, Any]:
    """The job's columns after `ending`. A job tells of an error only when it has failed."""
    status, _ = target(ending)
    error = ending.error if isinstance(ending, Failed) else None
    usage = usage_of(ending)
    return {
        "status": status,
        "completed_at": now if status.terminal else None,
        "run_at": run_at(ending, now),
        "crashes": int(isinstance(ending, Retried) and ending.crash),
        "retries": int(isinstance(ending, Retried) and not ending.crash),
        "stage": ending.stages[-1].name if ending.stages else None,
        "result": result_text(ending.result) if isinstance(ending, Completed) else None,
        "error": None if error is None else error_text(error),
        "code": None if error is None else error.code,
        "cached": int(isinstance(ending, Completed) and ending.cached),
        "compute_time_ms": usage.compute_time_ms,
        "peak_rss_bytes": usage.peak_rss_bytes,
    }


def entry(job: Held, epoch: int, ending: Ending, now: int) -> Entry:
    """The event that tells of `ending`."""
    _, event_type = target(ending)
    return Entry(event_type, _parts(job, epoch, ending, now))


def _parts(job: Held, epoch: int, ending: Ending, now: int) -> events.Parts:
    match ending:
        case Completed(result=result, usage=usage):
            return events.completed(job.id, job.request, result, usage)
        case Failed(error=error):
            return events.failed(job.id, job.request, error)
        case Canceled():
            return events.canceled(job.id, job.request)
        case Retried(error=error):
            return events.retrying(error, epoch, from_ms(run_at(ending, now) or now))
        case Released():
            return events.retrying(None, epoch, from_ms(now))
