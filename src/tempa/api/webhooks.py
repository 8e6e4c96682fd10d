"""Deliveries and dead letters: what became of each webhook, and what a person can do about it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import WebhooksKeeper
from tempa.api.body import read_model
from tempa.api.operation import CURSOR, LIMIT, READING, DeliveryId, Told, operation, query
from tempa.api.parts import Parts
from tempa.api.query import TEXT_PATTERN, Query, page
from tempa.core.errors import Refusal
from tempa.core.ids import is_id
from tempa.jobs.wire import Page
from tempa.webhooks.dead_letters import DeadLetters
from tempa.webhooks.model import DeadFilter, DeliveryStatus
from tempa.webhooks.views import delivery_view, group_view
from tempa.webhooks.wire import (
    DeadGroupView,
    DeliveryRecord,
    DeliveryView,
    Discard,
    Discarded,
    Redrive,
    Redriven,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])


class DeliveryPage(Page[DeliveryView]):
    """A page of deliveries."""


class DeadLetterPage(Page[DeadGroupView | DeliveryView]):
    """Groups of dead letters, or the letters of one."""


_ID_TEXT = {"type": "string", "pattern": TEXT_PATTERN}


@router.get(
    "/deliveries",
    **operation(
        "List deliveries",
        scope="webhooks",
        answers={200: Told("A page of deliveries, newest first.", DeliveryPage)},
        refusals=["invalid-request"],
        parameters=[
            query("status", {"type": "string", "enum": [*DeliveryStatus]}, "Only deliveries in this status."),
            query("job_id", _ID_TEXT, "Only those of this job."),
            query("endpoint_id", _ID_TEXT, "Only those to this endpoint."),
            LIMIT,
            CURSOR,
        ],
    ),
)
async def list_deliveries(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """All conditions hold together."""
    asked = Query(request)
    status = asked.choice("status", [*DeliveryStatus])
    job_id, endpoint_id = asked.text("job_id"), asked.text("endpoint_id")
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.webhooks.deliveries(
        caller.account,
        status=None if status is None else DeliveryStatus(status),
        job_id=job_id,
        endpoint_id=endpoint_id,
        limit=limit + 1,
        before=before,
    )
    return JSONResponse(page([delivery_view(one) for one in found], [one.id for one in found], limit))


@router.get(
    "/deliveries/{delivery_id}",
    **operation(
        "Look at a delivery",
        scope="webhooks",
        answers={200: Told("The delivery with every attempt.", DeliveryRecord)},
        refusals=["not-found"],
    ),
)
async def get_delivery(delivery_id: DeliveryId, parts: Parts, caller: WebhooksKeeper) -> Response:
    """An attempt without an outcome was on its way when its sender died: it may have arrived."""
    found = await parts.webhooks.delivery(caller.account, delivery_id) if is_id(delivery_id) else None
    if found is None:
        raise Refusal("not-found", f"There is no delivery {delivery_id[:80]} in this account.")
    return JSONResponse(delivery_view(*found))


@router.get(
    "/dead-letters",
    **operation(
        "List dead letters",
        scope="webhooks",
        answers={200: Told("The groups, or the letters of one.", DeadLetterPage)},
        refusals=["invalid-request"],
        parameters=[query("group", _ID_TEXT, "List the letters of this group, newest first."), LIMIT, CURSOR],
    ),
)
async def list_dead_letters(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """Grouped by endpoint and reason, all groups at once; with `group`, its letters by the page."""
    asked = Query(request)
    group = asked.text("group")
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    if group is None:
        groups = await parts.webhooks.dead_groups(caller.account)
        return JSONResponse({"items": [group_view(one) for one in groups], "next_cursor": None})
    which = DeadFilter(group=group)
    letters = await parts.webhooks.dead_letters(caller.account, which, limit + 1, before)
    return JSONResponse(page([delivery_view(one) for one in letters], [one.id for one in letters], limit))


@router.post(
    "/dead-letters/redrive",
    **operation(
        "Send dead letters again",
        scope="webhooks",
        body=Redrive,
        answers={200: Told("How many were meant, and how many go out again.", Redriven)},
        refusals=[*READING, "invalid-request"],
    ),
)
async def redrive(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """Each with a fresh budget of retries. Name what is meant; all conditions hold together."""
    asked = await read_model(request, parts.limits.json_body_bytes, Redrive)
    return JSONResponse(await DeadLetters(parts.webhooks).redrive(caller.account, asked))


@router.post(
    "/dead-letters/discard",
    **operation(
        "Give dead letters up",
        scope="webhooks",
        body=Discard,
        answers={200: Told("How many were given up.", Discarded)},
        refusals=[*READING, "invalid-request"],
    ),
)
async def discard(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """The reason stays on record."""
    asked = await read_model(request, parts.limits.json_body_bytes, Discard)
    return JSONResponse(await DeadLetters(parts.webhooks).discard(caller.account, asked))
