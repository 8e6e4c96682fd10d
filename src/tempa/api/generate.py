"""Asking for a job: a part, splats, a conversion."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from tempa.api.auth import JobsWriter
from tempa.api.doors import CONVERSIONS, MODELS, SPLATS, Door
from tempa.api.operation import IDEMPOTENCY_KEY, READING, RENTED, TICKET_ANSWERS, operation
from tempa.api.parts import Parts
from tempa.api.submission import submit

router = APIRouter(tags=["jobs"])


def _operation(summary: str, door: Door) -> dict[str, Any]:
    return operation(
        summary,
        scope="jobs:write",
        body=door.content(),
        answers=TICKET_ANSWERS,
        refusals=[
            *READING,
            *RENTED,
            "request-in-progress",
            *(["gone"] if door.inputs else []),
            "invalid-request",
            "idempotency-key-reused",
            "address-not-allowed",
            "engine-unavailable",
        ],
        parameters=[IDEMPOTENCY_KEY],
    )


@router.post(MODELS.route, **_operation("Generate a parametric CAD model", MODELS))
async def generate_model(request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """Validates the whole request, stores it durably and answers with a ticket at once.

    Poll or watch the job at `Location`, or name a `webhook_url`. The same request again, by its
    `Idempotency-Key` or by its content, gives the same job.
    """
    return await submit(request, parts, caller, MODELS)


@router.post(SPLATS.route, **_operation("Generate Gaussian splats", SPLATS))
async def generate_splat(request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """From one picture, or from a mesh (`engine: "mesh-splat"`). As JSON, or as a form with the file.

    What a picture's first bytes show is judged at once; what only its pixels show fails the job.
    """
    return await submit(request, parts, caller, SPLATS)


@router.post(CONVERSIONS.route, **_operation("Convert a file", CONVERSIONS))
async def convert(request: Request, parts: Parts, caller: JobsWriter) -> Response:
    """Splats to other formats, filtered, cropped, thinned out. As JSON, or as a form with the file."""
    return await submit(request, parts, caller, CONVERSIONS)
