"""The flow that waits for a job by long-poll, through restarts and broken connections."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tempa.client import calls
from tempa.client.effects import Answer, Pause
from tempa.client.errors import JobCanceled, JobFailed, TempaProblem, WaitTimeout
from tempa.client.events import is_terminal
from tempa.client.exchange import exchange, read, retry_after_seconds
from tempa.jobs.wire import JobView

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.client.effects import Flow
    from tempa.client.exchange import Pace

_POLL_SECONDS_MIN = 1.0


def wait(
    job_id: str,
    timeout_seconds: float | None,
    pace: Pace,
    patience_seconds: float,
    on_change: Callable[[JobView], None] | None = None,
) -> Flow[JobView]:
    """The job once it is completed.

    The first contact must come about within `patience_seconds`; after that only `timeout_seconds`
    ends the wait (None: nothing does), whatever happens to the server in between.

    Raises JobFailed, JobCanceled; WaitTimeout; NotReachable if there is no server at the end either.
    """
    limit = math.inf if timeout_seconds is None else timeout_seconds
    deadline = pace.monotonic() + limit
    answer = yield from exchange(calls.job(job_id), pace, min(deadline, pace.monotonic() + patience_seconds))
    view = read(JobView, answer)
    while True:
        if on_change is not None:
            on_change(view)
        if is_terminal(view):
            return outcome(view)
        answer = yield from _next(job_id, answer, pace, deadline)
        if answer.status != 304:
            view = read(JobView, answer)
        if not is_terminal(view) and pace.monotonic() >= deadline:
            raise WaitTimeout(view, limit)


def outcome(view: JobView) -> JobView:
    """A completed job as it is; raises JobFailed or JobCanceled for the others."""
    if view.status == "failed":
        raise JobFailed(view)
    if view.status == "canceled":
        raise JobCanceled(view)
    return view


def _next(job_id: str, before: Answer, pace: Pace, deadline: float) -> Flow[Answer]:
    """The next look at the job, held by the server until there is something new."""
    started = pace.monotonic()
    hold_seconds = max(1, int(min(calls.HOLD_SECONDS_MAX, deadline - started)))
    etag = before.headers.get("etag", "")
    try:
        answer = yield from exchange(calls.held_job(job_id, etag, hold_seconds), pace, deadline)
    except TempaProblem as problem:
        hold_seconds = _hold_seconds_max(problem)
        answer = yield from exchange(calls.held_job(job_id, etag, hold_seconds), pace, deadline)
    unchanged = answer.status == 304 or (etag and answer.headers.get("etag") == etag)
    early = pace.monotonic() - started < hold_seconds / 2
    if unchanged and early:  # something between us and the server does not hold: do not spin
        asked = retry_after_seconds(answer, pace.now())
        yield Pause(min(max(asked, _POLL_SECONDS_MIN), max(0.0, deadline - pace.monotonic())))
    return Answer(answer.status, {"etag": etag, **answer.headers}, answer.body)


def _hold_seconds_max(problem: TempaProblem) -> int:
    """How long this server holds at most, if that is what it refused; else the refusal stands."""
    for fault in problem.errors:
        if fault.pointer == "/wait" and isinstance(fault.limit, int | float) and fault.limit >= 1:
            return int(fault.limit)
    raise problem
