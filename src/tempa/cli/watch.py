"""Waiting for a job at the terminal: its stages on stderr, and a way back after Ctrl-C."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from tempa.cli.exits import INTERRUPTED, of_passing_job
from tempa.cli.output import note
from tempa.cli.show import progress_lines

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tempa.client import Client, JobEvent
    from tempa.jobs.wire import JobView


def wait(tempa: Client, job_id: str, timeout_seconds: float | None = None, *, stays: bool = True) -> JobView:
    """The job once it is completed. Ctrl-C leaves the job alone and says how to come back.

    `stays`: the server goes on when this command ends.
    """
    from tempa.client import JobCanceled, JobFailed

    try:
        if timeout_seconds is None and sys.stderr.isatty():
            for line in progress_lines(tempa.job(job_id)):
                note(line)
            _show_stages(tempa, job_id)
        return tempa.wait(job_id, timeout_seconds)
    except (JobFailed, JobCanceled) as error:
        if stays:
            raise
        raise of_passing_job(error) from None
    except KeyboardInterrupt:
        back = f"The job goes on. Wait for it again: tempa jobs wait {job_id}"
        note("\n" + (back if stays else "Stopped, and the job with it: its server was this command's own."))
        raise typer.Exit(INTERRUPTED) from None


def _show_stages(tempa: Client, job_id: str) -> None:
    """Until the job has ended, one way or the other."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("queued", total=None)
        for event in tempa.events(job_id):
            _show(progress, task, event)


def _show(progress: Progress, task: TaskID, event: JobEvent) -> None:
    words = stage_words(event.type, event.body)
    fraction = event.body.get("fraction")
    if words:
        progress.update(task, description=words)
    if isinstance(fraction, int | float):
        progress.update(task, total=1.0, completed=fraction)


def stage_words(kind: str, body: dict[str, Any] | Any) -> str | None:
    """What an event means for whoever watches; None if it is not worth a word."""
    if kind in {"job.stage", "progress"}:
        return str(body["stage"]) if body.get("stage") else None
    if kind == "job.retrying":
        return f"waiting for another attempt ({body.get('code', 'handed back')})"
    return {"job.queued": "queued", "job.started": "started"}.get(kind)
