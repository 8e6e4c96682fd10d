"""The events this slice emits: what stands in each body, and what is announced outside.

The store writes them inside the transaction they tell of, so these are plain functions of the
values that transaction has at hand: each returns (body, announce).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.jobs.model import JobError, Request, Result, Stage, Usage

Parts = tuple[dict[str, Any], dict[str, Any] | None]


def queued(request: Request) -> Parts:
    """`job.queued`: the job was admitted."""
    return {"engine": request.engine, "priority": request.priority}, None


def started(job_id: str, request: Request, attempt: int) -> Parts:
    """`job.started`: a worker took the job."""
    data = {"job_id": job_id, "status": "processing", "model": request.model}
    return {"attempt": attempt}, _announce(request, data)


def stage(reached: Stage) -> Parts:
    """`job.stage`: the running attempt reached a stage, at `reached_at`."""
    return {"stage": reached.name, "reached_at": rfc3339(reached.at)}, None


def retrying(error: JobError | None, attempt: int, run_at: datetime) -> Parts:
    """`job.retrying`: the attempt ended and another follows. Without an error: handed back at shutdown."""
    body: dict[str, Any] = {"attempt": attempt, "retry_at": rfc3339(run_at)}
    if error is not None:
        body |= {"code": error.code, "message": error.message}
    return body, None


def completed(job_id: str, request: Request, result: Result, usage: Usage) -> Parts:
    """`job.completed`: the result is published."""
    artifacts = [
        {
            "name": artifact.name,
            "role": artifact.role,
            "file_size_bytes": artifact.size_bytes,
            "sha256": artifact.sha256,
        }
        for artifact in result.artifacts
    ]
    data = {
        "job_id": job_id,
        "status": "completed",
        "model": request.model,
        "compute_time_ms": usage.compute_time_ms,
    }
    links = {artifact.role: [job_id, artifact.name] for artifact in result.artifacts}
    body = {"compute_time_ms": usage.compute_time_ms, "artifacts": artifacts}
    return body, _announce(request, data, links)


def failed(job_id: str, request: Request, error: JobError) -> Parts:
    """`job.failed`: the job ended without a result."""
    told = {"message": error.message, "retryable": error.retryable}
    data = {
        "job_id": job_id,
        "status": "failed",
        "model": request.model,
        "error_code": error.code,
        **told,
    }
    return {"code": error.code, **told}, _announce(request, data)


def canceled(job_id: str, request: Request) -> Parts:
    """`job.canceled`: the job ended at the client's wish."""
    return {}, _announce(request, {"job_id": job_id, "status": "canceled", "model": request.model})


def _announce(
    request: Request, data: Mapping[str, Any], links: Mapping[str, list[str]] | None = None
) -> dict[str, Any]:
    return {
        "family": request.family,
        "webhook_url": request.webhook_url,
        "webhook_events": list(request.webhook_events),
        "data": {**data, "tags": dict(request.tags)},
        "links": dict(links or {}),
        "traceparent": request.traceparent,
    }
