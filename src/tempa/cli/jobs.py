"""`tempa jobs`: look at jobs and act on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect, watch
from tempa.cli.output import Json, note, print_json, print_json_line, sent, wants_json
from tempa.cli.show import plain, print_job, stamp
from tempa.cli.submit import Key
from tempa.cli.table import print_table

if TYPE_CHECKING:
    from tempa.client import Client, JobEvent
    from tempa.client.calls import JobFilter
    from tempa.jobs.wire import JobView
    from tempa.webhooks.wire import DeliveryView

app = typer.Typer(help="Look at jobs and act on them.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, such as cad_06b3...")]


@app.command("ls")
def list_jobs(
    status: Annotated[
        str | None, typer.Option(help="queued, processing, completed, failed, canceled.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Only jobs of this engine.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag, name:value.")] = None,
    code: Annotated[str | None, typer.Option(help="Only jobs that failed with this code.")] = None,
    since: Annotated[str | None, typer.Option(help="Only jobs admitted since, RFC 3339.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    given = {"status": status, "engine": engine, "tag": tag, "code": code, "since": since}
    conditions: JobFilter = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]
    with connect.open_client() as tempa:
        found = list(tempa.jobs(limit=limit, **conditions))
    if wants_json(as_json):
        print_json({"items": [sent(job) for job in found]})
        return
    rows = [
        (job.job_id, job.status, job.error.code if job.error else "", job.engine, stamp(job.created_at))
        for job in found
    ]
    print_table(("job", "status", "code", "engine", "admitted"), rows, "There are no such jobs.")


@app.command("get")
def get_job(job_id: JobId, as_json: Json = False) -> None:
    """Show a job as it is now."""
    with connect.open_client() as tempa:
        print_job(tempa.job(job_id), as_json)


@app.command("wait")
def wait_for_job(
    job_id: JobId,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds; the job goes on after them.")] = None,
    as_json: Json = False,
) -> None:
    """Wait until a job is completed; survives restarts of the server."""
    with connect.open_client() as tempa:
        print_job(watch.wait(tempa, job_id, timeout), as_json)


@app.command("cancel")
def cancel_job(job_id: JobId, as_json: Json = False) -> None:
    """Cancel a job: at once while it waits, within seconds while it runs."""
    with connect.open_client() as tempa:
        view = tempa.cancel(job_id)
    if wants_json(as_json):
        print_json(sent(view))
    else:
        print(f"{view.job_id}: {view.outcome.replace('_', ' ')} ({view.status})")


@app.command("retry")
def retry_job(job_id: JobId, key: Key = None, as_json: Json = False) -> None:
    """Ask again for what an ended job was asked for, as a new job."""
    with connect.open_client() as tempa:
        handle = tempa.retry(job_id, idempotency_key=key)
    if wants_json(as_json):
        print_json({**sent(handle.ticket), "replayed": handle.replayed})
    else:
        print(f"{handle.id} {handle.ticket.status}")
        note(f"Wait for it: tempa jobs wait {handle.id}")


@app.command("events")
def show_events(
    job_id: JobId,
    after: Annotated[int, typer.Option(min=0, help="Only events behind this number.")] = 0,
    as_json: Json = False,
) -> None:
    """Print a job's events as they happen, to its end. JSON comes one event a line."""
    with connect.open_client() as tempa:
        for event in tempa.events(job_id, after):
            if wants_json(as_json):
                print_json_line(dict(event.body) if event.sequence else {"type": event.type, **event.body})
            else:
                print(_event_line(event), flush=True)


@app.command("explain")
def explain_job(job_id: JobId, as_json: Json = False) -> None:
    """Say in words why a job is where it is, and what can be done."""
    from tempa.cli.explain import explain

    with connect.open_client() as tempa:
        job = tempa.job(job_id)
        lines = explain(job, tempa.engines() if job.status == "queued" else [], _dead_letters(tempa, job))
    if wants_json(as_json):
        print_json({"job_id": job.job_id, "status": job.status, "explanation": lines})
    else:
        print("\n".join(lines))


@app.command("rm")
def remove_files(job_id: JobId, as_json: Json = False) -> None:
    """Remove an ended job's inputs and artifacts."""
    with connect.open_client() as tempa:
        tempa.delete(job_id)
    if wants_json(as_json):
        print_json({"job_id": job_id, "removed": True})
    else:
        print(f"{job_id}: its inputs and artifacts are gone.")


def _dead_letters(tempa: Client, job: JobView) -> list[DeliveryView]:
    """None while it runs, and none for a key that may not look at webhooks: the rest is told anyway."""
    from tempa.client import NotAuthorized

    if job.completed_at is None:
        return []
    try:
        return list(tempa.deliveries(job_id=job.job_id, status="dead"))
    except NotAuthorized:
        return []


def _event_line(event: JobEvent) -> str:
    told = {"sequence", "type", "at", "job_id"}
    rest = ", ".join(
        f"{name}={plain(value)}"
        for name, value in event.body.items()
        if name not in told and value is not None
    )
    number = "" if event.sequence is None else str(event.sequence)
    return f"{number:>4}  {event.body.get('at', ''):24}  {event.type:14}  {rest}".rstrip()
