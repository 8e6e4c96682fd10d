"""Jobs in words: one in full, and what was measured of its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.cli.output import print_json, sent, wants_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from tempa.jobs.wire import JobView, ProgressView

_UNITS = {"volume": "mm3", "area": "mm2", "bounding_box": "mm", "center_of_mass": "mm"}
_NOISE = 1e-9  # mm and its powers: a thousandth of the kernel's own tolerance, and less than anyone made
_MINUTE, _HOUR = 60, 3600
_TENTHS_BELOW = 9.95  # from here on whole seconds
_LINK: dict[str, Any] = {"download_url": True, "expires_at": True}
_LEADS_BACK: dict[str, Any] = {"retained_until": True, "result": {**_LINK, "artifacts": {"__all__": _LINK}}}


def print_job(job: JobView, as_json: bool, files: Sequence[Path] = (), *, stays: bool = True) -> None:
    """A job; with `files`, where its artifacts were put. `stays`: it can be asked for later, too."""
    if wants_json(as_json):
        written = {"files": [str(path) for path in files]} if files else {}
        print_json({**job_document(job, stays=stays), **written})
        return
    for line in job_lines(job, stays=stays):
        print(line)
    for path in files:
        print(f"  {path}  {path.stat().st_size} bytes")


def job_document(job: JobView, *, stays: bool = True) -> dict[str, Any]:
    """The job for programs. One that goes with its server loses what leads back to it."""
    return sent(job, None if stays else _LEADS_BACK)


def job_lines(job: JobView, *, stays: bool = True) -> list[str]:
    """What a person wants to know of a job, most important first."""
    head = f"{job.job_id}  {job.status}"
    lines = [head + ("  (from the cache)" if job.cached else "")]
    lines.append(f"  {job.engine}, {_times(job)}")
    lines += [f"  {line}" for line in progress_lines(job)]
    if job.error is not None:
        lines.append(f"  {job.error.code}: {job.error.message}")
    if job.tags:
        lines.append("  tags: " + ", ".join(f"{name}={value}" for name, value in sorted(job.tags.items())))
    if job.result is not None:
        lines += [f"  {line}" for line in measurement_lines(job.result.measurements)]
        names = ", ".join(f"{each.name} ({each.file_size_bytes} bytes)" for each in job.result.artifacts)
        kept = f", kept until {stamp(job.retained_until)}" if stays else ""
        lines.append(f"  artifacts: {names}{kept}")
    return lines


def progress_lines(job: JobView) -> list[str]:
    """Where a job is that has not ended, and how long it may still take."""
    lines = []
    if job.status == "queued" and job.progress.queue_position is not None:
        lines.append(place(job.progress.queue_position))
    if job.status == "processing":
        lines.append(f"{_stage(job)}, attempt {job.attempt}")
    if left := time_left(job.progress):
        lines.append(left)
    return lines


def place(ahead: int) -> str:
    """A place in the queue."""
    return {0: "It is next in the queue", 1: "One job is ahead of it"}.get(
        ahead, f"{ahead} jobs are ahead of it"
    )


def time_left(progress: ProgressView) -> str:
    """What past jobs say of the rest of this one. Empty: there are none to learn from."""
    if progress.eta_seconds is None:
        return ""
    low, high = progress.eta_range_seconds or (progress.eta_seconds, progress.eta_seconds)
    if high <= 0:
        return "Longer at it than past jobs: no telling when it ends"
    if progress.eta_seconds <= 0:
        return f"Longer at it than most past jobs: up to {duration(high)} more"
    median, least, most = duration(progress.eta_seconds), duration(low), duration(high)
    between = "" if least == median == most else f" (by past jobs, {least} to {most})"
    return f"About {median} left{between}"


def duration(seconds: float) -> str:
    """Seconds for people: two units at most, and tenths only where they say something."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes // _MINUTE} h {minutes % _MINUTE} min"


def measurement_lines(measurements: Mapping[str, Any]) -> list[str]:
    """What was measured; of solids with units, for splats have none."""
    units = _UNITS if "volume" in measurements else {}
    return [
        f"{name.replace('_', ' ')}: {_measure(value, units.get(name))}"
        for name, value in measurements.items()
    ]


def stamp(at: datetime | None) -> str:
    """A time for people: local, to the second."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def plain(value: Any) -> str:
    """A JSON value as people write it: yes and no, nine digits, no noise around zero."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return "0" if abs(value) < _NOISE else f"{value:.9g}"
    if isinstance(value, list):
        if any(isinstance(part, dict) for part in value):
            return "; ".join(plain(part) for part in value)
        return "[" + ", ".join(plain(part) for part in value) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_member(name, part)}" for name, part in value.items())
    return str(value)


def _member(name: str, value: Any) -> str:
    """Of an error its size is all that matters, however small."""
    if name.endswith("error") and isinstance(value, float):
        return f"{value:.3g}"
    return plain(value)


def _measure(value: Any, unit: str | None) -> str:
    return f"{plain(value)} {unit or ''}".rstrip()


def _times(job: JobView) -> str:
    told = f"admitted {stamp(job.created_at)}"
    if job.completed_at is not None:
        seconds = (job.completed_at - job.created_at).total_seconds()
        return f"{told}, over after {seconds:.1f} s ({job.compute_time_ms} ms in the kernel)"
    return told


def _stage(job: JobView) -> str:
    fraction = job.progress.fraction
    return job.progress.stage + (f" {fraction:.0%}" if fraction is not None else "")
