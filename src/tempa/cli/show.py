"""Jobs in words: one in full, and what was measured of its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.cli.output import print_json, wants_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from tempa.jobs.wire import JobView

_UNITS = {"volume": "mm3", "area": "mm2", "bounding_box": "mm", "center_of_mass": "mm"}


def print_job(job: JobView, as_json: bool, files: Sequence[Path] = ()) -> None:
    """A job; with `files`, where its artifacts were put."""
    if wants_json(as_json):
        written = {"files": [str(path) for path in files]} if files else {}
        print_json({**job.model_dump(mode="json"), **written})
        return
    for line in job_lines(job):
        print(line)
    for path in files:
        print(f"  {path}  {path.stat().st_size} bytes")


def job_lines(job: JobView) -> list[str]:
    """What a person wants to know of a job, most important first."""
    head = f"{job.job_id}  {job.status}"
    lines = [head + ("  (from the cache)" if job.cached else "")]
    lines.append(f"  {job.engine}, {_times(job)}")
    if job.status == "queued" and job.progress.queue_position is not None:
        lines.append(f"  {job.progress.queue_position} ahead of it in the queue")
    if job.status == "processing":
        lines.append(f"  {_stage(job)}, attempt {job.attempt}")
    if job.error is not None:
        lines.append(f"  {job.error.code}: {job.error.message}")
    if job.tags:
        lines.append("  tags: " + ", ".join(f"{name}={value}" for name, value in sorted(job.tags.items())))
    if job.result is not None:
        lines += [f"  {line}" for line in measurement_lines(job.result.measurements)]
        names = ", ".join(f"{each.name} ({each.file_size_bytes} bytes)" for each in job.result.artifacts)
        lines.append(f"  artifacts: {names}, kept until {stamp(job.retained_until)}")
    return lines


def measurement_lines(measurements: Mapping[str, Any]) -> list[str]:
    """What was measured, with units."""
    return [f"{name.replace('_', ' ')}: {_measure(name, value)}" for name, value in measurements.items()]


def stamp(at: datetime | None) -> str:
    """A time for people: local, to the second."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _measure(name: str, value: Any) -> str:
    unit = _UNITS.get(name, "")
    return f"{_number(value)} {unit}".rstrip()


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, list):
        return "[" + ", ".join(_number(part) for part in value) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_number(part)}" for name, part in value.items())
    return str(value)


def _times(job: JobView) -> str:
    told = f"admitted {stamp(job.created_at)}"
    if job.completed_at is not None:
        seconds = (job.completed_at - job.created_at).total_seconds()
        return f"{told}, over after {seconds:.1f} s ({job.compute_time_ms} ms in the kernel)"
    return told


def _stage(job: JobView) -> str:
    fraction = job.progress.fraction
    return job.progress.stage + (f" {fraction:.0%}" if fraction is not None else "")
