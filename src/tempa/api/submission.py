"""A request for a job that works on files: read whole, its files stored, admitted.

The body is JSON, which names its inputs or brings them in base64, or a form with a file for each input and
the JSON in the field `request`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from tempa.api.auth import Caller
from tempa.api.body import bounded, not_stored, one_header, read_document, too_large
from tempa.api.doors import REQUEST, Door
from tempa.api.form import FORM_BYTES, Field, Form, form_type
from tempa.api.parts import ApiParts
from tempa.api.tickets import ticket_answer
from tempa.api.trace import traceparent
from tempa.core.canonical import read_json
from tempa.core.errors import Problem, Refusal
from tempa.jobs.inputs import NO_INPUTS, Collector, Inputs, Source
from tempa.jobs.inputs import fields as input_fields
from tempa.jobs.intake import invalid, read_key
from tempa.jobs.model import Admission
from tempa.jobs.ports import Engine


async def submit(request: Request, parts: ApiParts, caller: Caller, door: Door) -> Response:
    """Validate the whole request, store it durably and answer with a ticket."""
    key = read_key(one_header(request, "idempotency-key"))
    collector = Collector(
        store=parts.jobs,
        artifacts=parts.artifacts,
        limits=parts.limits,
        account=caller.account,
        check_url=parts.intake.why_blocked,
    )
    try:
        admission = await _admit(request, parts, caller, door, key, collector)
    except OSError as error:
        raise not_stored() from error
    finally:
        await collector.close()
    return ticket_answer(parts, admission)


async def _admit(
    request: Request, parts: ApiParts, caller: Caller, door: Door, key: str | None, collector: Collector
) -> Admission:
    offered = door.offers(parts.engines)
    document, brought = await _read(request, parts, door, offered, collector)
    inputs = await _inputs(document, door, offered, brought, collector)
    asked = parts.intake.read(document, door.share, door.engine, offered=offered, inputs=inputs)
    asked = replace(asked, traceparent=traceparent(request.scope))
    return await parts.intake.admit(caller.account, door.route, asked, key, given=inputs.stored())


async def _inputs(
    document: Any,
    door: Door,
    offered: Mapping[str, Engine],
    brought: Mapping[str, Source],
    collector: Collector,
) -> Inputs:
    """What the request's engine is given. An engine that does not run here takes whatever there is."""
    if not isinstance(document, dict):
        return NO_INPUTS
    name = document.get("engine", door.engine)
    engine = offered.get(name) if isinstance(name, str) else None
    if engine is None:
        return replace(NO_INPUTS, fields=input_fields(*door.inputs))
    return await collector.collect(document, engine, door.inputs, brought)


async def _read(
    request: Request, parts: ApiParts, door: Door, offered: Mapping[str, Engine], collector: Collector
) -> tuple[Any, dict[str, Source]]:
    """The document, and the inputs that came beside it."""
    content_type = form_type(request) if door.inputs else None
    if content_type is None:
        return await _read_json(request, parts, door), {}
    document: Any = {}
    brought: dict[str, Source] = {}
    takes = {one.name: one for engine in offered.values() for one in engine.takes}
    most = sum(one.size_bytes_max(parts.limits) for one in takes.values())
    bound = most + parts.limits.json_body_bytes + FORM_BYTES
    async with aclosing(bounded(request, bound)) as body:
        fields = Form(content_type, {REQUEST, *takes}).fields(body)
        async with aclosing(fields):
            async for field in fields:
                if field.name == REQUEST:
                    document = await _read_request(field, parts.limits.json_body_bytes)
                else:
                    pointer = f"/{field.name}"
                    brought[field.name] = await collector.bring(takes[field.name], pointer, field.content)
    for source in brought.values():
        if source.stored is not None and not source.stored.size_bytes:
            raise invalid([Problem(source.pointer, "The file is empty.")])
    return document, brought


async def _read_json(request: Request, parts: ApiParts, door: Door) -> Any:
    try:
        return await read_document(request, parts.limits.json_body_bytes)
    except Refusal as refusal:
        if refusal.slug != "unsupported-media-type" or not door.inputs:
            raise
        files = " or ".join(door.inputs)
        detail = f"{refusal.detail} Or send multipart/form-data with the file {files}."
        raise replace(refusal, detail=detail) from None


async def _read_request(field: Field, size_bytes_max: int) -> Any:
    received = bytearray()
    async for chunk in field.content:
        received += chunk
        if len(received) > size_bytes_max:
            raise too_large(size_bytes_max)
    try:
        return read_json(bytes(received))
    except Refusal as refusal:
        raise Refusal(refusal.slug, f"The form's field {REQUEST}: {refusal.detail}", refusal.errors) from None
