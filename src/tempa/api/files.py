"""Uploads: input files that later requests name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import timedelta

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Caller, JobsWriter
from tempa.api.body import bounded, not_stored
from tempa.api.form import FORM_BYTES, Form, form_type
from tempa.api.operation import Told, operation
from tempa.api.parts import ApiParts, Parts
from tempa.core.crash import crash_point
from tempa.core.errors import Problem
from tempa.core.ids import new_id
from tempa.jobs.intake import invalid
from tempa.jobs.model import StoredFile
from tempa.jobs.ports import StoredObject
from tempa.jobs.views import file_view
from tempa.jobs.wire import FileView

router = APIRouter(tags=["files"])

_FIELD = "file"
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
    content_type = form_type(request)
    bound = size_bytes_max + (0 if content_type is None else FORM_BYTES)
    async with aclosing(bounded(request, bound)) as body:
        if content_type is None:
            async for chunk in body:
                yield chunk
            return
        fields = Form(content_type, {_FIELD}).fields(body)
        async with aclosing(fields):
            sent = False
            async for field in fields:
                sent = True
                async for chunk in field.content:
                    yield chunk
        if not sent:
            raise invalid([Problem("/file", "The form has no field file.")])


async def _receive(parts: ApiParts, file_id: str, chunks: AsyncIterator[bytes]) -> StoredObject:
    try:
        return await parts.artifacts.receive(file_id, chunks, parts.limits.upload_bytes)
    except OSError as error:
        raise not_stored() from error


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
