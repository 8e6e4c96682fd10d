"""The flow that downloads results: whole and right, or not there at all."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tempa.client import calls
from tempa.client.effects import Answer, Lost, Pause, Save
from tempa.client.errors import Corrupted, Misconfigured
from tempa.client.exchange import exchange, failure, read, repeat_seconds
from tempa.client.waiting import outcome
from tempa.core.retry import full_jitter
from tempa.jobs.wire import ArtifactView, JobView

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tempa.client.effects import Flow
    from tempa.client.exchange import Pace

Fault: TypeAlias = Answer | Lost | Corrupted

_RENEWAL_SECONDS = 60.0
_LINK_REFUSED = frozenset({401, 403})  # buckets say 401 or 403 of a link that has expired


class PartFile:
    """A file on its way: written beside its target under a passing name, hashed as it comes."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        self._file = self._path.open("xb")
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of what has been written, in hex."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append."""
        self._file.write(chunk)
        self._digest.update(chunk)

    def keep(self) -> None:
        """Put it in its place, in one step."""
        self._file.close()
        self._path.replace(self._target)

    def drop(self) -> None:
        """Leave nothing behind, unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def download(
    source: str | JobView | ArtifactView,
    folder: Path,
    names: Collection[str] | None,
    pace: Pace,
    deadline: float,
) -> Flow[list[Path]]:
    """Fetch a completed job's artifacts (those in `names`, if given), or one artifact, into `folder`.

    Raises JobFailed and its like when the job is not completed; Corrupted when bytes do not match.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(source, ArtifactView):
        return [(yield from _fetch(source, None, folder, pace))]
    job_id = source if isinstance(source, str) else source.job_id
    view = source
    if isinstance(view, str):
        view = read(JobView, (yield from exchange(calls.job(job_id), pace, deadline)))
    return (yield from _fetch_all(_chosen(outcome(view), names), job_id, folder, pace))


def _fetch_all(artifacts: Sequence[ArtifactView], job_id: str, folder: Path, pace: Pace) -> Flow[list[Path]]:
    paths = []
    for artifact in artifacts:
        path = yield from _fetch(artifact, job_id, folder, pace)
        paths.append(path)
    return paths


def _chosen(view: JobView, names: Collection[str] | None) -> Sequence[ArtifactView]:
    if view.result is None:
        raise Misconfigured(
            f"{view.job_id} is {view.status}; there is nothing to download before it is completed."
        )
    artifacts = view.result.artifacts
    missing = set(names or ()) - {artifact.name for artifact in artifacts}
    if missing:
        there = ", ".join(artifact.name for artifact in artifacts)
        raise Misconfigured(f"{view.job_id} has no {', '.join(sorted(missing))}; it has {there}.")
    return [artifact for artifact in artifacts if names is None or artifact.name in names]


def _fetch(artifact: ArtifactView, job_id: str | None, folder: Path, pace: Pace) -> Flow[Path]:
    """One file. A link that has expired is renewed; a transfer that breaks starts again."""
    target = folder / _safe_name(artifact.name)
    link = artifact.download_url
    fault: Fault | None = None
    for retry in range(pace.policy.max_retries + 1):
        fault = yield from _transfer(link, target, artifact.sha256)
        if fault is None:
            return target
        seconds = _again_seconds(fault, retry, pace, renewable=job_id is not None)
        if seconds is None:
            break
        yield Pause(seconds)
        if job_id is not None and _is_refused(fault):
            link = yield from _new_link(job_id, artifact.name, pace)
    assert fault is not None, "at least one try was made"
    raise fault if isinstance(fault, Corrupted) else failure(fault)


def _transfer(link: str, target: Path, sha256: str) -> Flow[Fault | None]:
    """None: the file lies there, and it is the right one."""
    part = PartFile(target)
    try:
        reply: Answer | Lost = yield Save(calls.download(link), part)
        if isinstance(reply, Lost) or reply.status != 200:
            return reply
        if part.sha256 != sha256:
            return Corrupted(f"{target.name} came with SHA-256 {part.sha256}; the job says {sha256}.")
        part.keep()
        return None
    finally:
        part.drop()


def _again_seconds(fault: Fault, retry: int, pace: Pace, *, renewable: bool) -> float | None:
    if isinstance(fault, Corrupted) or (renewable and _is_refused(fault)):
        return full_jitter(retry, pace.policy, pace.dice)
    return repeat_seconds(calls.download(""), fault, retry, pace)


def _is_refused(fault: Fault) -> bool:
    return isinstance(fault, Answer) and fault.status in _LINK_REFUSED


def _new_link(job_id: str, name: str, pace: Pace) -> Flow[str]:
    deadline = pace.monotonic() + _RENEWAL_SECONDS
    view = read(JobView, (yield from exchange(calls.job(job_id), pace, deadline)))
    (artifact,) = _chosen(outcome(view), {name})
    return artifact.download_url


def _safe_name(name: str) -> str:
    """A plain file name: whatever a server says, nothing is written outside the folder."""
    if name in {"", ".", ".."} or Path(name).name != name or "\0" in name:
        raise Misconfigured(f"The server names a result {name!r}, which is not a plain file name.")
    return name
