"""Result files, by signed link: whole or in parts (RFC 9110, section 14), never in memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi import Path as PathParameter
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from tempa.api.etags import is_held
from tempa.api.head import is_head
from tempa.api.operation import IF_NONE_MATCH, JobId, Told, header, operation, query
from tempa.api.parts import ApiParts, Parts
from tempa.api.presence import presence
from tempa.core.errors import Refusal
from tempa.jobs import live
from tempa.jobs.model import Job, Status, StoredArtifact

router = APIRouter(tags=["artifacts"])

_CHUNK_BYTES = 256 * 1024
_EXPIRES = re.compile(r"[1-9][0-9]{0,11}")
# Positions far outside of any file are valid, too; int() reads up to 4,300 digits. An empty element of
# a list counts for nothing (RFC 9110, section 5.6.1.2).
_RANGE = re.compile(
    r"bytes=[\s,]*(?:(?P<first>[0-9]{1,4000})-(?P<last>[0-9]{1,4000})?|-(?P<suffix>[0-9]{1,4000}))[\s,]*",
    re.IGNORECASE,
)
_FILE_HEADERS = ("ETag", "Accept-Ranges", "Content-Disposition")


@router.get(
    "/v1/artifacts/{job_id}/{name}",
    **operation(
        "Download a result file",
        scope=None,
        answers={
            200: Told("The file.", headers=_FILE_HEADERS, media_type="application/octet-stream"),
            206: Told(
                "A part of it.",
                headers=(*_FILE_HEADERS, "Content-Range"),
                media_type="application/octet-stream",
            ),
            304: Told("The client has it.", headers=("ETag",)),
        },
        refusals=["invalid-signature", "not-found", "gone", "range-not-satisfiable", "store-unavailable"],
        parameters=[
            query("expires", {"type": "integer", "minimum": 1, "maximum": 10**12 - 1}, "From the link."),
            query("signature", {"type": "string"}, "From the link."),
            header(
                "Range", {"type": "string"}, "One range of bytes; several are answered with the whole file."
            ),
            header("If-Range", {"type": "string"}, "An ETag: the range counts only if it is still right."),
            IF_NONE_MATCH,
        ],
    ),
)
async def get_artifact(
    job_id: JobId,
    name: Annotated[str, PathParameter(description="The file's name.")],
    request: Request,
    parts: Parts,
) -> Response:
    """Take the link from the job's `result`: it is signed, and works without a key until it expires.

    The ETag is the file's SHA-256.
    """
    _check_link(request, parts, job_id, name)
    if name == live.FILE:
        return await _live_preview(parts, job_id)
    artifact = await _published(parts, job_id, name)
    headers = _headers(artifact)
    if is_held(request.headers, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    path = await parts.artifacts.path(artifact.key)
    if path is None:
        raise _gone()
    wanted = None if is_head(request.scope) else _range(request.headers, artifact, headers["ETag"])
    return FilePart(path, artifact, headers, wanted)


def _check_link(request: Request, parts: ApiParts, job_id: str, name: str) -> None:
    expires = request.query_params.getlist("expires")
    signature = request.query_params.getlist("signature")
    if not (
        len(expires) == len(signature) == 1
        and _EXPIRES.fullmatch(expires[0])
        and parts.links.holds(job_id, name, int(expires[0]), signature[0])
    ):
        detail = "This link was altered or has expired. GET the job again for a fresh one."
        raise Refusal("invalid-signature", detail)


async def has_live_preview(parts: ApiParts, job: Job) -> bool:
    """Whether a picture of what the job is making can be looked at now."""
    return job.status is Status.PROCESSING and await parts.artifacts.path(live.key(job.id)) is not None


async def _live_preview(parts: ApiParts, job_id: str) -> Response:
    """The newest one: it is small, and another a moment later."""
    job = await parts.jobs.job_by_id(job_id)
    path = await parts.artifacts.path(live.key(job_id))
    if job is None or job.status is not Status.PROCESSING or path is None:
        raise Refusal("not-found", "The job makes no picture of itself now.")
    try:
        content = await asyncio.to_thread(path.read_bytes)
    except FileNotFoundError:
        raise Refusal("not-found", "The job makes no picture of itself now.") from None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type=live.MEDIA_TYPE, headers=headers)


async def _published(parts: ApiParts, job_id: str, name: str) -> StoredArtifact:
    """Only what the job's completion has published can be reached, whatever lies in the store."""
    job = await parts.jobs.job_by_id(job_id)
    artifacts = job.result.artifacts if job is not None and job.result is not None else ()
    found = next((artifact for artifact in artifacts if artifact.name == name), None)
    if job is None or found is None:
        raise Refusal("not-found", "The job has no such file.")
    if job.removed or job.retained_until <= parts.clock.now():
        raise _gone()
    return found


def _gone() -> Refusal:
    return Refusal("gone", "The file was removed, or its retention has ended.")


def _headers(artifact: StoredArtifact) -> dict[str, str]:
    return {
        "ETag": f'"{artifact.sha256}"',
        "Accept-Ranges": "bytes",
        "Content-Disposition": _disposition(artifact.name),
        "Cache-Control": "private, no-cache",  # a link's end must count, and the file may be removed
        "X-Content-Type-Options": "nosniff",
    }


def _disposition(name: str) -> str:
    """RFC 6266: quoted where it is plain, and in RFC 8187's form where it is not."""
    if re.fullmatch(r"[\w .()+,=@-]+", name, re.ASCII):
        return f'attachment; filename="{name}"'
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


def _range(headers: Headers, artifact: StoredArtifact, etag: str) -> tuple[int, int] | None:
    """First byte and the one after the last. None: the whole file.

    A range that is malformed, of another unit or several in one is passed over, as RFC 9110 allows;
    so is one whose `If-Range` names other bytes. Raises `Refusal`: `range-not-satisfiable`.
    """
    match = _RANGE.fullmatch(", ".join(headers.getlist("range")))
    if match is None or headers.get("if-range", etag) != etag:
        return None
    size = artifact.size_bytes
    if match["suffix"] is not None:
        first, end = max(0, size - int(match["suffix"])), size
    else:
        first, last = int(match["first"]), int(match["last"] or size - 1)
        if match["last"] is not None and last < first:
            return None
        end = min(last + 1, size)
    if first >= end:
        detail = f"The file has {size} bytes."
        raise Refusal("range-not-satisfiable", detail, headers={"Content-Range": f"bytes */{size}"})
    return first, end


class FilePart(Response):
    """The bytes of a file from one to another. It sends by itself, so that the file is always closed."""

    def __init__(
        self, path: Path, artifact: StoredArtifact, headers: Mapping[str, str], wanted: tuple[int, int] | None
    ) -> None:
        size = artifact.size_bytes
        self._path = path
        self._first, self._end = wanted or (0, size)
        self.status_code = 200 if wanted is None else 206
        self.media_type = artifact.media_type
        self.background = None
        self.init_headers({**headers, "Content-Length": str(self._end - self._first)})
        if wanted is not None:
            self.headers["Content-Range"] = f"bytes {self._first}-{self._end - 1}/{size}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the bytes, as long as the client is there. A server that stops lets downloads finish."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if is_head(scope):
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            file = await asyncio.to_thread(self._path.open, "rb")
        except FileNotFoundError:
            raise _gone() from None
        try:
            await send(start)
            async with presence(receive, asyncio.Event()) as over:
                await self._copy(file, send, over)
        finally:
            file.close()

    async def _copy(self, file: BinaryIO, send: Send, over: asyncio.Event) -> None:
        file.seek(self._first)
        left = self._end - self._first
        while left and not over.is_set():
            chunk = await asyncio.to_thread(file.read, min(_CHUNK_BYTES, left))
            assert chunk, "an artifact is as long as its row says"
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
