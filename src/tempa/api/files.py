"""Uploads: input files that later requests name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import timedelta

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Caller, JobsWriter
from tempa.api.body import one_header, refuse_announced, too_large
from tempa.api.form import FileForm
from tempa.api.operation import Told, operation
from tempa.api.parts import ApiParts, Parts
from tempa.core.crash import crash_point
from tempa.core.errors import Problem, Refusal
from tempa.core.ids import new_id
from tempa.core.limits import KIB
from tempa.jobs.intake import invalid
from tempa.jobs.model import StoredFile
from tempa.jobs.ports import StoredObject
from tempa.jobs.views import file_view
from tempa.jobs.wire import FileView

router = APIRouter(tags=["files"])

_FORM_BYTES = 64 * KIB  # what a form may have around its file
_BODIES = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}},
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "properties": {"file": {"type": "string", "format": "binary"}},
            "required": ["file"],
            "additionalProperties": False,
        }
    },
}


@router.post(
    "/v1/files",
    **operation(
        "Upload a file",
        scope="jobs:write",
        body=_BODIES,
        answers={201: Told("The file is stored.", FileView)},
        refusals=["body-too-large", "unsupported-media-type", "invalid-request"],
    ),
)
async def upload_file(request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """The body is the file, or a form with the one field `file`. It is stored as it streams in.

    There is no `Idempotency-Key` here: each upload is a file of its own, which expires.
    """
    file_id = new_id("file")
    async with aclosing(_chunks(request, parts.limits.upload_bytes)) as chunks:
        stored = await _receive(parts, file_id, chunks)
    crash_point("upload.stored")
    try:
        return await _enter(parts, caller, file_id, stored)
    except BaseException:  # bytes without a row would never be found again
        await parts.artifacts.delete(file_id)
        raise


async def _chunks(request: Request, size_bytes_max: int) -> AsyncGenerator[bytes, None]:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal("unsupported-media-type", "Send the file without Content-Encoding.")
    content_type = one_header(request, "content-type") or ""
    is_form = content_type.partition(";")[0].strip().lower() == "multipart/form-data"
    bound = size_bytes_max + (_FORM_BYTES if is_form else 0)
    refuse_announced(request, bound)
    async with aclosing(_bounded(request, bound)) as body:
        if not is_form:
            async for chunk in body:
                yield chunk
            return
        async with aclosing(FileForm(content_type).file(body)) as file:
            async for chunk in file:
                yield chunk


async def _bounded(request: Request, size_bytes_max: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async with aclosing(request.stream()) as body:
        async for chunk in body:
            size += len(chunk)
            if size > size_bytes_max:
                raise too_large(size_bytes_max)
            yield chunk


async def _receive(parts: ApiParts, file_id: str, chunks: AsyncIterator[bytes]) -> StoredObject:
    try:
        return await parts.artifacts.receive(file_id, chunks, parts.limits.upload_bytes)
    except OSError as error:
        detail = "The file could not be stored. Try again later."
        raise Refusal("store-unavailable", detail, headers={"Retry-After": "10"}) from error


async def _enter(parts: ApiParts, caller: Caller, file_id: str, stored: StoredObject) -> Response:
    if not stored.size_bytes:
        raise invalid([Problem("", "The file is empty.")])
    now = parts.clock.now()
    entry = StoredFile(
        id=file_id,
        account=caller.account,
        key=stored.key,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        created_at=now,
        expires_at=now + timedelta(days=parts.file_retention_days),
    )
    await parts.jobs.add_file(entry)
    crash_point("upload.recorded")
    return JSONResponse(file_view(entry), 201)
