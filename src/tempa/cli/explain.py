"""Why a job is where it is, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.cli.show import place, plain, stamp, time_left
from tempa.core.errors import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.jobs.wire import ErrorView, JobView
    from tempa.webhooks.wire import DeliveryView


def explain(
    job: JobView, engines: Sequence[Mapping[str, Any]] = (), dead: Sequence[DeliveryView] = ()
) -> list[str]:
    """Lines of plain words.

    `engines` are the server's, to name the lane a queued job waits in; `dead` are those webhooks of
    the job that could not be delivered.
    """
    tell = {
        "queued": _queued,
        "processing": _processing,
        "completed": _completed,
        "failed": _failed,
        "canceled": _canceled,
    }[job.status]
    return [
        f"{job.job_id} is {job.status}.",
        *tell(job, engines),
        *(line for letter in dead for line in _dead_letter(letter)),
    ]


def _dead_letter(letter: DeliveryView) -> list[str]:
    why = f"{letter.reason or 'no reason is known'}, after {_attempts(letter.attempt_count).lower()}"
    return [
        f"Its webhook {letter.type} to {letter.url} could not be delivered: {why}.",
        letter.what_next,
        f"See each attempt: tempa dead-letters show {letter.delivery_id}",
    ]


def _queued(job: JobView, engines: Sequence[Mapping[str, Any]]) -> list[str]:
    engine = next((engine for engine in engines if engine.get("name") == job.engine), None)
    lines = [_place(job, engine), *_left(job)]
    if engines and engine is None:
        lines.append(f"No worker of this server offers {job.engine} now; the job waits until one does.")
    if job.attempt:
        lines.append(f"{_attempts(job.attempt)} ended without a result; it is tried again.")
    if job.deadline_at:
        lines.append(f"It fails with DEADLINE_EXCEEDED if it has not finished by {stamp(job.deadline_at)}.")
    lines += _bound(job)
    lines.append(f"Give up waiting: tempa jobs cancel {job.job_id}")
    return lines


def _place(job: JobView, engine: Mapping[str, Any] | None) -> str:
    lane = f" in the lane {engine['lane']}" if engine and engine.get("lane") else ""
    position = job.progress.queue_position
    if position is None:
        return f"It waits for a free worker{lane}, admitted {stamp(job.created_at)}."
    return f"{place(position)}{lane}, admitted {stamp(job.created_at)}."


def _left(job: JobView) -> list[str]:
    return [f"{left}." for left in (time_left(job.progress),) if left]


def _processing(job: JobView, _: Sequence[Mapping[str, Any]]) -> list[str]:
    fraction = job.progress.fraction
    done = f", {fraction:.0%} done" if fraction is not None else ""
    return [
        f"Attempt {job.attempt} of it runs since {stamp(job.started_at)}: {job.progress.stage}{done}.",
        *_left(job),
        *_bound(job),
        f"Watch it: tempa jobs events {job.job_id}",
    ]


def _bound(job: JobView) -> list[str]:
    if job.gpu_instance_id is None:
        return []
    bound = f"It is bound to the GPU instance {plain(job.gpu_instance_id)}"
    return [f"{bound}: it fails with RENTAL_EXPIRED if the rental and its grace end first."]


def _completed(job: JobView, _: Sequence[Mapping[str, Any]]) -> list[str]:
    how = (
        "The same work had been done before: its result was taken from the cache."
        if job.cached
        else f"It took {job.compute_time_ms} ms in the kernel, in {_attempts(job.attempt).lower()}."
    )
    return [how, f"Its artifacts are kept until {stamp(job.retained_until)}."]


def _failed(job: JobView, _: Sequence[Mapping[str, Any]]) -> list[str]:
    if job.error is None:
        return ["The server did not say why."]
    return [
        f"{job.error.code}: {_meaning(job.error)}",
        *([job.error.message] if job.error.message != _meaning(job.error) else []),
        *_hints(job.error),
        *(f"  {name}: {plain(value)}" for name, value in job.error.detail.items()),
        f"It ended {stamp(job.completed_at)}, after {_attempts(job.attempt).lower()}.",
        _advice(job),
    ]


def _canceled(job: JobView, _: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"Somebody canceled it {stamp(job.completed_at)}.",
        f"Ask for the same again: tempa jobs retry {job.job_id}",
    ]


def _meaning(error: ErrorView) -> str:
    return CODES[error.code].meaning if error.code in CODES else error.message


def _hints(error: ErrorView) -> list[str]:
    hint = error.hint or (CODES[error.code].hint if error.code in CODES else None)
    return [hint] if hint else []


def _advice(job: JobView) -> str:
    if job.error is not None and job.error.retryable:
        return f"Asking again may help: tempa jobs retry {job.job_id}"
    return "Asking again for the same would fail the same way: change the request."


def _attempts(count: int) -> str:
    return "One attempt" if count == 1 else f"{count} attempts"
