"""What a client may see of a job (CONTRACTS section 2)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tempa.core.clock import rfc3339
from tempa.jobs import live
from tempa.jobs.model import STATUS_AFTER_EVENT, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.core.events import Event
    from tempa.core.links import Links
    from tempa.jobs.estimates import Estimate
    from tempa.jobs.model import Admission, CancelOutcome, Job, StoredArtifact, StoredFile

_SHORT = ("file_format", "file_size_bytes", "download_url", "expires_at")


def ticket(admission: Admission) -> dict[str, Any]:
    """The body of 202 (and of its replay, with the job's present status)."""
    job = admission.job
    return {"job_id": job.id, "status": str(job.status), "created_at": rfc3339(job.created_at)}


def job_view(
    job: Job,
    links: Links,
    queue_position: int | None = None,
    left: Estimate | None = None,
    *,
    has_preview: bool = False,
) -> dict[str, Any]:
    """`GET /v1/jobs/{job_id}`. Links are minted anew at each call. `left`: how long it will still take."""
    return {
        "job_id": job.id,
        "status": str(job.status),
        "created_at": rfc3339(job.created_at),
        "started_at": _time(job.started_at),
        "completed_at": _time(job.completed_at),
        "result": _result(job, links),
        "error": asdict(job.error) if job.error and job.status is Status.FAILED else None,
        "engine": job.request.engine,
        "gpu_instance_id": job.request.gpu_instance_id,
        "sequence": job.sequence,
        "attempt": job.epoch,
        "cached": job.cached,
        "progress": {
            "stage": job.stage if job.status is Status.PROCESSING and job.stage else str(job.status),
            "fraction": 1.0 if job.status is Status.COMPLETED else job.fraction,
            "queue_position": queue_position if job.status is Status.QUEUED else None,
            "eta_seconds": None if left is None else left.median_seconds,
            "eta_range_seconds": None if left is None else list(left.range_seconds),
            "preview_url": links.artifact(job.id, live.FILE)[0] if has_preview else None,
        },
        "compute_time_ms": job.usage.compute_time_ms,
        "peak_rss_bytes": job.usage.peak_rss_bytes,
        "deadline_at": _time(job.deadline_at),
        "retained_until": rfc3339(job.retained_until),
        "removed": job.removed,
        "tags": dict(job.request.tags),
    }


def cancel_view(outcome: CancelOutcome, job: Job) -> dict[str, Any]:
    """The answer to a cancel."""
    return {"job_id": job.id, "status": str(job.status), "outcome": str(outcome)}


def event_view(event: Event) -> dict[str, Any]:
    """One event in the account's feed."""
    return {"position": event.position, "id": event.id, **log_view(event)}


def log_view(event: Event) -> dict[str, Any]:
    """One event in its job's log: the `data` of a server-sent event."""
    return {
        "sequence": event.sequence,
        "type": event.type,
        "at": rfc3339(event.at),
        "job_id": event.job_id,
        **event.body,
    }


def file_view(stored: StoredFile) -> dict[str, Any]:
    """The answer to an upload."""
    return {
        "file_id": stored.id,
        "sha256": stored.sha256,
        "file_size_bytes": stored.size_bytes,
        "expires_at": rfc3339(stored.expires_at),
    }


def etag(job: Job) -> str:
    """Names the job's log up to its last event; links don't count."""
    return f'W/"{job.sequence}"'


def status_at(events: Sequence[Event], sequence: int) -> Status | None:
    """The status a job had once event `sequence` stood in its log. None: no such event yet."""
    status = None
    for event in events:
        if event.sequence is not None and event.sequence <= sequence:
            status = STATUS_AFTER_EVENT.get(event.type, status)
    return status


def _result(job: Job, links: Links) -> dict[str, Any] | None:
    if job.status is not Status.COMPLETED or job.result is None:
        return None
    artifacts = [_artifact(job.id, artifact, links) for artifact in job.result.artifacts]
    short = {key: artifacts[0][key] for key in _SHORT}
    if job.removed:  # what was made can still be read; there is nothing to follow a link to
        artifacts, short = [], {**short, "download_url": None, "expires_at": None}
    return {**short, "artifacts": artifacts, "measurements": dict(job.result.measurements)}


def _artifact(job_id: str, artifact: StoredArtifact, links: Links) -> dict[str, Any]:
    url, expires_at = links.artifact(job_id, artifact.name)
    return {
        "name": artifact.name,
        "role": artifact.role,
        "file_format": artifact.file_format,
        "media_type": artifact.media_type,
        "file_size_bytes": artifact.size_bytes,
        "sha256": artifact.sha256,
        "download_url": url,
        "expires_at": rfc3339(expires_at),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
