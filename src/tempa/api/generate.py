"""Asking for a part."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from tempa.api.auth import JobsWriter
from tempa.api.body import one_header, read_document
from tempa.api.operation import IDEMPOTENCY_KEY, READING, TICKET_ANSWERS, operation
from tempa.api.parts import Parts
from tempa.api.tickets import ticket_answer
from tempa.api.trace import traceparent
from tempa.jobs.intake import read_key
from tempa.jobs.wire import GenerateModel, JobOptions

router = APIRouter(tags=["jobs"])

_ROUTE = "/v1/models/generate"
_ENGINE = "opencascade-brep"
_SHARE = frozenset(GenerateModel.model_fields) - frozenset(JobOptions.model_fields) - {"engine"}


@router.post(
    _ROUTE,
    **operation(
        "Generate a parametric CAD model",
        scope="jobs:write",
        body=GenerateModel,
        answers=TICKET_ANSWERS,
        refusals=[
            *READING,
            "request-in-progress",
            "invalid-request",
            "idempotency-key-reused",
            "address-not-allowed",
            "engine-unavailable",
        ],
        parameters=[IDEMPOTENCY_KEY],
    ),
)
async def generate_model(request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """Validates the whole request, stores it durably and answers with a ticket at once.

    Poll or watch the job at `Location`, or name a `webhook_url`. The same request again, by its
    `Idempotency-Key` or by its content, gives the same job.
    """
    key = read_key(one_header(request, "idempotency-key"))
    document = await read_document(request, parts.limits.json_body_bytes)
    asked = parts.intake.read(document, _SHARE, _ENGINE)
    asked = replace(asked, traceparent=traceparent(request.scope))
    return ticket_answer(parts, await parts.intake.admit(caller.account, _ROUTE, asked, key))
