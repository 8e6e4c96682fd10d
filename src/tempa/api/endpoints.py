"""Registered endpoints: where all of an account's events go, without a job naming it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import WebhooksKeeper
from tempa.api.body import has_body, read_document, read_nothing
from tempa.api.operation import CURSOR, LIMIT, READING, READING_NOTHING, EndpointId, Told, operation, query
from tempa.api.parts import Parts
from tempa.api.query import TEXT_PATTERN, Query, page
from tempa.core.errors import Problem
from tempa.jobs.intake import invalid
from tempa.jobs.wire import Page
from tempa.webhooks.wire import (
    ChangeEndpoint,
    EndpointSecret,
    EndpointView,
    PublicKeys,
    RegisterEndpoint,
    RotateSecret,
    TestSent,
)

router = APIRouter(prefix="/v1/webhooks/endpoints", tags=["webhooks"])
public_router = APIRouter(tags=["webhooks"])

_ID = {"type": "string", "pattern": TEXT_PATTERN}
_NO_STORE = {"Cache-Control": "no-store"}
_KEYS_FRESH = {"Cache-Control": "public, max-age=300"}  # a key is added a whole overlap before one goes


class EndpointPage(Page[EndpointView]):
    """A page of endpoints."""


@router.post(
    "",
    **operation(
        "Register an endpoint",
        scope="webhooks",
        body=RegisterEndpoint,
        answers={201: Told("The endpoint, with its secret.", EndpointSecret, ("Location",))},
        refusals=[*READING, "invalid-request", "address-not-allowed"],
    ),
)
async def register_endpoint(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """It gets the events of all jobs of the account that its `events` name, from now on.

    Beside a job's `webhook_url`, should that be the same: each gets its own delivery, signed with its own
    secret.
    """
    document = await read_document(request, parts.limits.json_body_bytes)
    made = await parts.endpoints.register(caller.account, document)
    headers = {**_NO_STORE, "Location": f"{router.prefix}/{made['id']}"}
    return JSONResponse(made, 201, headers)


@router.get(
    "",
    **operation(
        "List endpoints",
        scope="webhooks",
        answers={200: Told("A page of registered endpoints, newest first.", EndpointPage)},
        refusals=["invalid-request"],
        parameters=[LIMIT, CURSOR],
    ),
)
async def list_endpoints(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """Without their secrets."""
    asked = Query(request)
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.endpoints.page(caller.account, limit + 1, before)
    return JSONResponse(page(found, [one["id"] for one in found], limit))


@router.get(
    "/{endpoint_id}",
    **operation(
        "Look at an endpoint",
        scope="webhooks",
        answers={200: Told("The endpoint, and how it fares.", EndpointView)},
        refusals=["not-found"],
    ),
)
async def get_endpoint(endpoint_id: EndpointId, parts: Parts, caller: WebhooksKeeper) -> Response:
    """Also that of a job's `webhook_url`, which deliveries and dead letters name."""
    return JSONResponse(await parts.endpoints.look(caller.account, endpoint_id))


@router.patch(
    "/{endpoint_id}",
    **operation(
        "Change an endpoint",
        scope="webhooks",
        body=ChangeEndpoint,
        answers={200: Told("The endpoint as it is now.", EndpointView)},
        refusals=[*READING, "not-found", "conflict", "invalid-request", "address-not-allowed"],
    ),
)
async def change_endpoint(
    endpoint_id: EndpointId, request: Request, parts: Parts, caller: WebhooksKeeper
) -> Response:
    """Only what is given changes. What waits there goes to the new `url`."""
    document = await read_document(request, parts.limits.json_body_bytes)
    return JSONResponse(await parts.endpoints.change(caller.account, endpoint_id, document))


@router.delete(
    "/{endpoint_id}",
    **operation(
        "Remove an endpoint",
        scope="webhooks",
        answers={204: Told("Nothing is sent there any more.")},
        refusals=["not-found", "conflict"],
    ),
)
async def remove_endpoint(endpoint_id: EndpointId, parts: Parts, caller: WebhooksKeeper) -> Response:
    """What waits there is canceled; what became of earlier deliveries stays on record."""
    await parts.endpoints.remove(caller.account, endpoint_id)
    return Response(status_code=204)


@router.post(
    "/{endpoint_id}/rotate",
    **operation(
        "Rotate an endpoint's secret",
        scope="webhooks",
        body=RotateSecret,
        body_optional=True,
        answers={200: Told("The endpoint, with its new secret.", EndpointSecret)},
        refusals=[*READING, "not-found", "conflict", "invalid-request"],
    ),
)
async def rotate_secret(
    endpoint_id: EndpointId, request: Request, parts: Parts, caller: WebhooksKeeper
) -> Response:
    """Until the overlap is over deliveries carry a signature of each secret; five are kept at most.

    With `overlap_seconds: 0` the older ones end at once: for a secret that became known.
    """
    document = await read_document(request, parts.limits.json_body_bytes) if has_body(request) else {}
    return JSONResponse(
        await parts.endpoints.rotate(caller.account, endpoint_id, document), headers=_NO_STORE
    )


@router.post(
    "/{endpoint_id}/test",
    **operation(
        "Send a test",
        scope="webhooks",
        answers={202: Told("The delivery of a webhook.test event.", TestSent, ("Location",))},
        refusals=[*READING_NOTHING, "not-found", "conflict", "invalid-request"],
    ),
)
async def test_endpoint(
    endpoint_id: EndpointId, request: Request, parts: Parts, caller: WebhooksKeeper
) -> Response:
    """A delivery like any other, whatever the endpoint's `events`; one that is paused gets it later."""
    await read_nothing(request, parts.limits.json_body_bytes)
    sent = await parts.endpoints.test(caller.account, endpoint_id)
    where = f"/v1/webhooks/deliveries/{sent['delivery_id']}"
    return JSONResponse(sent, 202, {"Location": where})


@router.post(
    "/{endpoint_id}/pause",
    **operation(
        "Pause an endpoint",
        scope="webhooks",
        answers={200: Told("The endpoint as it is now.", EndpointView)},
        refusals=[*READING_NOTHING, "not-found", "conflict", "invalid-request"],
    ),
)
async def pause_endpoint(
    endpoint_id: EndpointId, request: Request, parts: Parts, caller: WebhooksKeeper
) -> Response:
    """What comes is parked until it is resumed, however long that takes."""
    await read_nothing(request, parts.limits.json_body_bytes)
    return JSONResponse(await parts.endpoints.pause(caller.account, endpoint_id))


@router.post(
    "/{endpoint_id}/resume",
    **operation(
        "Resume an endpoint",
        scope="webhooks",
        answers={200: Told("The endpoint as it is now.", EndpointView)},
        refusals=[*READING_NOTHING, "not-found", "invalid-request"],
    ),
)
async def resume_endpoint(
    endpoint_id: EndpointId, request: Request, parts: Parts, caller: WebhooksKeeper
) -> Response:
    """After a pause, a 410 or an outage; also that of a job's `webhook_url`. What waits goes out, paced."""
    await read_nothing(request, parts.limits.json_body_bytes)
    return JSONResponse(await parts.endpoints.resume(caller.account, endpoint_id))


@public_router.get(
    "/.well-known/jwks.json",
    **operation(
        "Read an endpoint's public keys",
        scope=None,
        answers={200: Told("A JSON Web Key Set, the newest key first.", PublicKeys)},
        refusals=["not-found", "invalid-request", "keys-unavailable", "store-unavailable"],
        parameters=[{**query("endpoint", _ID, "An endpoint's id."), "required": True}],
    ),
)
async def get_public_keys(request: Request, parts: Parts) -> Response:
    """What verifies the deliveries of an endpoint with `signing: ed25519`. No key is needed."""
    asked = Query(request)
    endpoint_id = asked.text("endpoint")
    asked.check()
    if endpoint_id is None:
        raise invalid([Problem("/endpoint", "Name the endpoint whose keys are meant.")])
    return JSONResponse(await parts.endpoints.public_keys(endpoint_id), headers=_KEYS_FRESH)
