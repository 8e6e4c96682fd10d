"""What a client may still do to a job it has asked for: cancel it, ask for it again, remove it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import Refusal
from tempa.jobs.inputs import own
from tempa.jobs.views import cancel_view

if TYPE_CHECKING:
    from typing import Any

    from tempa.jobs.intake import Intake
    from tempa.jobs.model import Admission, Job
    from tempa.jobs.ports import ArtifactStore, JobStore


async def cancel(store: JobStore, account: str, job_id: str) -> dict[str, Any]:
    """Cancel a job; idempotent. A queued one ends at once, a running kernel is killed.

    Raises `Refusal`: `not-found`.
    """
    found = await store.cancel(account, job_id)
    crash_point("cancel.committed")
    if found is None:
        raise not_found(job_id)
    outcome, job = found
    return cancel_view(outcome, job)


async def retry(store: JobStore, intake: Intake, account: str, job_id: str, key: str | None) -> Admission:
    """Ask again for what a terminal job was asked for: a new job, by the engine as it is now.

    The options are those of the old job, `cache` too: unless it says "bypass", a job that was
    completed is answered with its own result again, as long as that is kept.

    Raises `Refusal`: `not-found`, `conflict` (409) while the job is not terminal, `gone` when its inputs
    were removed, `engine-unavailable`, and those of `Intake.admit`.
    """
    job = await store.job(account, job_id)
    if job is None:
        raise not_found(job_id)
    _check_terminal(job)
    engine = intake.engines.get(job.request.engine)
    if engine is None:
        raise Refusal("engine-unavailable", f"The engine {job.request.engine} does not run here any more.")
    request = replace(job.request, engine_version=engine.version)
    given = own(job.id, request)
    if given and job.removed:
        raise Refusal("gone", "The inputs of this job were removed. Ask with new ones.")
    route = f"/v1/jobs/{job_id}/retry"
    return await intake.admit(account, route, request, key, derive=False, given=given)


async def remove(store: JobStore, artifacts: ArtifactStore, account: str, job_id: str) -> None:
    """Delete a terminal job's artifacts; the job's own row stays until its retention ends.

    Bytes first: a crash in between leaves links that answer 410, and a job that asks for removal
    once more. The other way round it would leave bytes that nobody looks for.

    Raises `Refusal`: `not-found`, `conflict` (409) while the job is not terminal, `store-unavailable`
    when bytes could not be deleted: the job is not marked then, and may be asked for again.
    """
    job = await store.job(account, job_id)
    if job is None:
        raise not_found(job_id)
    _check_terminal(job)
    try:
        await drop_artifacts(artifacts, job)
    except OSError as error:
        detail = "The files could not be deleted. Try again later."
        raise Refusal("store-unavailable", detail, headers={"Retry-After": "10"}) from error
    crash_point("remove.deleted")
    await store.mark_removed(account, job_id)


async def drop_artifacts(artifacts: ArtifactStore, job: Job) -> None:
    """Delete its inputs and what any attempt has kept. Raises OSError when something stays."""
    for epoch in range(job.epoch + 1):  # 0: the inputs (`jobs.inputs`)
        await artifacts.delete(f"{job.id}.a{epoch}")


def _check_terminal(job: Job) -> None:
    if not job.status.terminal:
        raise Refusal("conflict", f"The job is {job.status}. Cancel it first, or wait for its end.")


def not_found(job_id: str) -> Refusal:
    """The one answer for jobs that never were and jobs of other accounts."""
    return Refusal("not-found", f"There is no job {job_id[:80]} in this account.")
