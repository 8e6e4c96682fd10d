"""The answer to a request for work: a ticket, at once."""

from __future__ import annotations

from datetime import datetime

from fastapi import Response
from starlette.responses import JSONResponse

from tempa.api.parts import ApiParts
from tempa.jobs.model import Admission, Job, Verdict
from tempa.jobs.views import ticket


def ticket_answer(parts: ApiParts, admission: Admission) -> Response:
    """202 for a new job; 200 and `Idempotency-Replayed` for one that stood."""
    job = admission.job
    replayed = admission.verdict is Verdict.REPLAYED
    headers = {"Location": f"/v1/jobs/{job.id}", **poll_headers(job, parts.clock.now())}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return JSONResponse(ticket(admission), 200 if replayed else 202, headers)


def poll_headers(job: Job, now: datetime) -> dict[str, str]:
    """`Retry-After` while a job can still change: a tenth of its age so far, 1 to 10 s."""
    if job.status.terminal:
        return {}
    seconds = (now - job.created_at).total_seconds() / 10
    return {"Retry-After": str(round(min(10.0, max(1.0, seconds))))}
