"""A client's own jobs: look, list, cancel, ask again, remove."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.artifacts import has_live_preview
from tempa.api.auth import Caller, JobReader, JobsReader, JobsWriter
from tempa.api.body import one_header, read_nothing
from tempa.api.etags import is_held
from tempa.api.operation import (
    CURSOR,
    IDEMPOTENCY_KEY,
    IF_NONE_MATCH,
    LIMIT,
    READING_NOTHING,
    RENTED,
    TICKET_ANSWERS,
    WAIT,
    JobId,
    Told,
    operation,
    query,
)
from tempa.api.parts import ApiParts, Parts
from tempa.api.polling import hold, named_statuses
from tempa.api.query import PAIR_PATTERN, TEXT_PATTERN, Query, page
from tempa.api.tickets import poll_headers, ticket_answer
from tempa.core.clock import from_ms, rfc3339, to_ms
from tempa.core.errors import CODES, Refusal
from tempa.core.ids import is_id
from tempa.core.signing import sign_token
from tempa.jobs import cancel
from tempa.jobs.intake import read_key
from tempa.jobs.model import Job, JobFilter, Status
from tempa.jobs.views import etag, job_view
from tempa.jobs.wire import CancelView, JobView, Page, TokenView

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class JobPage(Page[JobView]):
    """A page of jobs."""


_FILTERS = [
    query("status", {"type": "string", "enum": [*Status]}, "Only jobs in this status."),
    query("engine", {"type": "string", "pattern": TEXT_PATTERN}, "Only jobs of this engine."),
    query(
        "tag",
        {"type": "string", "pattern": PAIR_PATTERN},
        "Only jobs with this tag, as `name:value`. With colons in it, every way to read it counts.",
    ),
    query("code", {"type": "string", "enum": [*CODES]}, "Only jobs that failed with this code."),
    query("since", {"type": "string", "format": "date-time"}, "Only jobs admitted at or after this time."),
]


@router.get(
    "",
    **operation(
        "List jobs",
        scope="jobs:read",
        answers={200: Told("A page of jobs, newest first.", JobPage)},
        refusals=["invalid-request"],
        parameters=[*_FILTERS, LIMIT, CURSOR],
    ),
)
async def list_jobs(request: Request, parts: Parts, caller: JobsReader) -> Response:
    """All conditions hold together. Place in the queue and time left are told for single jobs only."""
    asked = Query(request)
    status = asked.choice("status", [*Status])
    narrow = JobFilter(
        status=None if status is None else Status(status),
        engine=asked.text("engine"),
        tag=asked.pair("tag"),
        code=asked.choice("code", CODES),
        since=asked.time("since"),
    )
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    jobs = await parts.jobs.jobs(caller.account, narrow, limit + 1, before)
    return JSONResponse(page([job_view(job, parts.links) for job in jobs], [job.id for job in jobs], limit))


@router.get(
    "/{job_id}",
    **operation(
        "Look at a job",
        scope="jobs:read",
        answers={
            200: Told("The job as it is now.", JobView, ("ETag", "Retry-After")),
            304: Told("Nothing has happened since.", headers=("ETag", "Retry-After")),
        },
        refusals=["not-found", "gone", "invalid-request"],
        parameters=[IF_NONE_MATCH, WAIT],
        token=True,
    ),
)
async def get_job(job_id: JobId, request: Request, parts: Parts, caller: JobReader) -> Response:
    """Links in the result are made anew for each answer and do not count for the ETag.

    With `wait`, the answer is held until the status is another than the one that the ETag named
    (without an ETag: another than now). A job that has ended is answered at once.
    """
    asked = Query(request, "token")
    seconds = asked.seconds("wait", parts.limits.wait_seconds_max)
    asked.check()
    job = await kept_job(parts, caller, job_id)
    if seconds and not job.status.terminal:
        named = await named_statuses(parts, job, request.headers)
        job = await hold(parts, request, job, named, seconds)
    headers = {
        "ETag": etag(job),
        "Cache-Control": "private, no-cache",
        **poll_headers(job, parts.clock.now()),
    }
    if is_held(request.headers, etag(job)):
        return Response(status_code=304, headers=headers)
    return JSONResponse(await _whole_view(parts, job), headers=headers)


@router.post(
    "/{job_id}/cancel",
    **operation(
        "Cancel a job",
        scope="jobs:write",
        answers={200: Told("What became of the wish.", CancelView)},
        refusals=["not-found", "gone", *READING_NOTHING, "invalid-request"],
    ),
)
async def cancel_job(job_id: JobId, request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """Idempotent. A queued job ends at once; the kernel of a running one is killed within seconds."""
    await read_nothing(request, parts.limits.json_body_bytes)
    job = await kept_job(parts, caller, job_id)
    return JSONResponse(await cancel.cancel(parts.jobs, caller.account, job.id))


@router.post(
    "/{job_id}/retry",
    **operation(
        "Ask again for what a finished job was asked for",
        scope="jobs:write",
        answers=TICKET_ANSWERS,
        refusals=[
            "not-found",
            "gone",
            "conflict",
            "request-in-progress",
            *READING_NOTHING,
            *RENTED,
            "invalid-request",
            "idempotency-key-reused",
            "engine-unavailable",
        ],
        parameters=[IDEMPOTENCY_KEY],
    ),
)
async def retry_job(job_id: JobId, request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """A new job with the same request. 409 while the job has not ended."""
    key = read_key(one_header(request, "idempotency-key"))
    await read_nothing(request, parts.limits.json_body_bytes)
    job = await kept_job(parts, caller, job_id)
    admission = await cancel.retry(parts.jobs, parts.intake, caller.account, job.id, key)
    return ticket_answer(parts, admission)


@router.delete(
    "/{job_id}",
    **operation(
        "Remove a job's files",
        scope="jobs:write",
        answers={204: Told("Its inputs and artifacts are gone.")},
        refusals=["not-found", "gone", "conflict"],
    ),
)
async def delete_job(job_id: JobId, parts: Parts, caller: JobsWriter) -> Response:
    """The job itself can be looked at until `retained_until`. 409 while it has not ended."""
    job = await kept_job(parts, caller, job_id)
    await cancel.remove(parts.jobs, parts.artifacts, caller.account, job.id)
    return Response(status_code=204)


@router.post(
    "/{job_id}/token",
    **operation(
        "Make a read-only token for one job",
        scope="jobs:read",
        answers={200: Told("The token.", TokenView)},
        refusals=["not-found", "gone", *READING_NOTHING, "invalid-request"],
    ),
)
async def make_token(job_id: JobId, request: Request, parts: Parts, caller: JobsReader) -> Response:
    """For browsers, as `?token=`: it reads this job and its events, and nothing else, until it expires."""
    await read_nothing(request, parts.limits.json_body_bytes)
    job = await kept_job(parts, caller, job_id)
    expires = to_ms(parts.clock.now()) // 1000 + parts.links.ttl_seconds
    token = sign_token(parts.link_keys[0], job.id, expires)
    view = {"token": token, "expires_at": rfc3339(from_ms(expires * 1000))}
    return JSONResponse(view, headers={"Cache-Control": "no-store"})


def well_formed(job_id: str) -> str:
    """An id that can be asked for. Raises `Refusal`: `not-found`."""
    if not is_id(job_id):
        raise cancel.not_found(job_id)
    return job_id


async def kept_job(parts: ApiParts, caller: Caller, job_id: str) -> Job:
    """The caller's job. Raises `Refusal`: `not-found`, `gone` once its retention has ended."""
    job = await parts.jobs.job(caller.account, well_formed(job_id))
    if job is None:
        raise await _pruned(parts, caller, job_id)
    if job.status.terminal and job.retained_until <= parts.clock.now():
        raise Refusal("gone", f"The job was kept until {rfc3339(job.retained_until)}.")
    return job


async def _pruned(parts: ApiParts, caller: Caller, job_id: str) -> Refusal:
    """`gone` for a job whose row is gone too, as long as that is remembered; else `not-found`."""
    gone_at = await parts.jobs.gone_at(caller.account, job_id)
    if gone_at is None:
        return cancel.not_found(job_id)
    return Refusal("gone", f"The job's retention has ended; its record was kept until {rfc3339(gone_at)}.")


async def _whole_view(parts: ApiParts, job: Job) -> dict[str, Any]:
    position = await parts.jobs.queue_position(job) if job.status is Status.QUEUED else None
    left = await parts.estimates.of(job)
    return job_view(job, parts.links, position, left, has_preview=await has_live_preview(parts, job))
