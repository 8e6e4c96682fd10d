"""Rows of `job`, `event` and `file` as the jobs slice's values, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.core.clock import from_ms, to_ms
from tempa.core.events import Event
from tempa.jobs.model import Job, JobError, Request, Result, Status, StoredArtifact, StoredFile, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tempa.jobs.model import NewJob


def job_row(new: NewJob) -> dict[str, Any]:
    """The columns of a job as it is admitted. What lists filter by stands beside the request."""
    request = new.request
    return {
        "id": new.id,
        "account": new.account,
        "engine": request.engine,
        "lane": request.lane,
        "priority": request.priority,
        "created_at": to_ms(new.created_at),
        "deadline_at": None if new.deadline_at is None else to_ms(new.deadline_at),
        "retained_until": to_ms(new.retained_until),
        "work_key": new.work_key,
        "tags": encode(request.tags),
        "request": encode(_shallow(request)),
        "gpu_instance_id": request.gpu_instance_id,
    }


def admitted_job(new: NewJob, run_at: int) -> Job:
    """The job that an admission has made of `new`."""
    return Job(
        id=new.id,
        account=new.account,
        status=Status.QUEUED,
        request=new.request,
        created_at=new.created_at,
        started_at=None,
        completed_at=None,
        run_at=from_ms(run_at),
        deadline_at=new.deadline_at,
        retained_until=new.retained_until,
        epoch=0,
        crash_count=0,
        retry_count=0,
        sequence=1,
        stage=None,
        fraction=None,
        cancel_requested=False,
        cached=False,
        result=None,
        error=None,
        usage=Usage(),
        work_key=new.work_key,
    )


def job_from(row: Mapping[str, Any]) -> Job:
    """A row of `job`."""
    return Job(
        id=row["id"],
        account=row["account"],
        status=Status(row["status"]),
        request=request_from(row["request"]),
        created_at=from_ms(row["created_at"]),
        started_at=_time(row["started_at"]),
        completed_at=_time(row["completed_at"]),
        run_at=from_ms(row["run_at"]),
        deadline_at=_time(row["deadline_at"]),
        retained_until=from_ms(row["retained_until"]),
        epoch=row["epoch"],
        crash_count=row["crash_count"],
        retry_count=row["retry_count"],
        sequence=row["sequence"],
        stage=row["stage"],
        fraction=row["fraction"],
        cancel_requested=bool(row["cancel_requested"]),
        cached=bool(row["cached"]),
        result=_result_from(row["result"]),
        error=_error_from(row["error"]),
        usage=Usage(compute_time_ms=row["compute_time_ms"], peak_rss_bytes=row["peak_rss_bytes"]),
        removed=bool(row["removed"]),
        work_key=row["work_key"],
    )


def request_from(text: str) -> Request:
    """The `request` column."""
    document = decode(text)
    document["webhook_events"] = tuple(document["webhook_events"])
    return Request(**document)


def result_text(result: Result) -> str:
    """The manifest: the one place that says which files are the job's."""
    artifacts = [_shallow(artifact) for artifact in result.artifacts]
    return encode({"artifacts": artifacts, "measurements": result.measurements})


def error_text(error: JobError) -> str:
    """The `error` column."""
    return encode(_shallow(error))


def event_from(row: Mapping[str, Any]) -> Event:
    """A row of `event`."""
    return Event(
        id=row["id"],
        account=row["account"],
        job_id=row["job_id"],
        sequence=row["sequence"],
        type=row["type"],
        at=from_ms(row["at"]),
        body=decode(row["body"]),
        announce=decode(row["announce"]),
        position=row["position"],
    )


def file_from(row: Mapping[str, Any]) -> StoredFile:
    """A row of `file`."""
    return StoredFile(
        id=row["id"],
        account=row["account"],
        key=row["key"],
        sha256=row["sha256"],
        size_bytes=row["size_bytes"],
        created_at=from_ms(row["created_at"]),
        expires_at=from_ms(row["expires_at"]),
    )


def _shallow(value: Any) -> dict[str, Any]:
    """Not dataclasses.asdict: it would copy a megabyte of `work` to have it encoded once."""
    return {column.name: getattr(value, column.name) for column in fields(value)}


def _result_from(text: str | None) -> Result | None:
    document = decode(text)
    if document is None:
        return None
    artifacts = tuple(StoredArtifact(**artifact) for artifact in document["artifacts"])
    return Result(artifacts=artifacts, measurements=document["measurements"])


def _error_from(text: str | None) -> JobError | None:
    document = decode(text)
    return None if document is None else JobError(**document)


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_ms(milliseconds)
