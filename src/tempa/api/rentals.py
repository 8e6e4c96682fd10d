"""GPU instances, and quotes of what it costs to rent them."""

from __future__ import annotations

import asyncio
from io import BytesIO

import segno
from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Anyone, Caller, Operator, PaymentsKeeper
from tempa.api.body import read_model, read_nothing
from tempa.api.operation import (
    ANY_SCOPE,
    CURSOR,
    LIMIT,
    READING,
    READING_NOTHING,
    GpuInstanceId,
    QuoteId,
    Told,
    operation,
)
from tempa.api.parts import ApiParts, Parts
from tempa.api.query import Query, page
from tempa.core.errors import Refusal
from tempa.core.ids import is_id, new_id
from tempa.jobs.wire import Page
from tempa.settlement.quotes import Quote, solana_pay_url
from tempa.settlement.quoting import unknown_instance
from tempa.settlement.rental_views import instance_view, quote_view
from tempa.settlement.rentals import GpuInstance, NewInstance
from tempa.settlement.wire import AddInstance, AskQuote, ChangePrices, GpuInstanceView, QuoteView

instances = APIRouter(prefix="/v1/gpu-instances", tags=["rentals"])
quotes = APIRouter(prefix="/v1/rentals/quotes", tags=["rentals"])

_SVG = "image/svg+xml"
_PIXELS_A_MODULE = 4


class GpuInstancePage(Page[GpuInstanceView]):
    """A page of instances."""


class QuotePage(Page[QuoteView]):
    """A page of quotes."""


@instances.post(
    "",
    **operation(
        "Offer a GPU instance",
        scope="admin",
        body=AddInstance,
        answers={201: Told("The instance.", GpuInstanceView, ("Location",))},
        refusals=[*READING, "operator-only", "invalid-request"],
    ),
)
async def add_instance(request: Request, parts: Parts, caller: Operator) -> Response:
    """For rent at these prices, from now on, to one account at a time."""
    asked = await read_model(request, parts.limits.json_body_bytes, AddInstance)
    prices = await parts.quoting.offers(asked.prices)
    added = await parts.settlement.add_instance(NewInstance(id=new_id("gpu"), name=asked.name, prices=prices))
    return _shown(added, parts, caller, 201, {"Location": f"{instances.prefix}/{added.id}"})


@instances.get(
    "",
    **operation(
        "List GPU instances",
        scope=ANY_SCOPE,
        answers={200: Told("A page of instances, oldest first.", GpuInstancePage)},
        refusals=["invalid-request"],
        parameters=[LIMIT, CURSOR],
    ),
)
async def list_instances(request: Request, parts: Parts, caller: Anyone) -> Response:
    """All of them, whoever rents them."""
    asked = Query(request)
    limit, after = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.settlement.instances(limit + 1, after)
    views = [_view(one, parts, caller) for one in found]
    return JSONResponse(page(views, [one.id for one in found], limit))


@instances.get(
    "/{gpu_instance_id}",
    **operation(
        "Look at a GPU instance",
        scope=ANY_SCOPE,
        answers={200: Told("The instance.", GpuInstanceView)},
        refusals=["not-found"],
    ),
)
async def get_instance(gpu_instance_id: GpuInstanceId, parts: Parts, caller: Anyone) -> Response:
    """Whether it is free, what it costs, and until when it is rented."""
    return _shown(await _instance(gpu_instance_id, parts), parts, caller)


@instances.patch(
    "/{gpu_instance_id}",
    **operation(
        "Change the prices of a GPU instance",
        scope="admin",
        body=ChangePrices,
        answers={200: Told("The instance as it is now.", GpuInstanceView)},
        refusals=[*READING, "operator-only", "not-found", "invalid-request"],
    ),
)
async def change_prices(
    gpu_instance_id: GpuInstanceId, request: Request, parts: Parts, caller: Operator
) -> Response:
    """For quotes from now on, and for what is paid to older ones after their `expires_at`."""
    asked = await read_model(request, parts.limits.json_body_bytes, ChangePrices)
    instance = await _instance(gpu_instance_id, parts)
    await parts.settlement.change_prices(instance.id, await parts.quoting.offers(asked.prices))
    return _shown(await _instance(instance.id, parts), parts, caller)


@instances.post(
    "/{gpu_instance_id}/suspend",
    **operation(
        "Suspend a GPU instance",
        scope="admin",
        answers={200: Told("The instance as it is now.", GpuInstanceView)},
        refusals=[*READING_NOTHING, "operator-only", "not-found", "invalid-request"],
    ),
)
async def suspend_instance(
    gpu_instance_id: GpuInstanceId, request: Request, parts: Parts, caller: Operator
) -> Response:
    """Nobody may use or quote it; its renter's time stands still. Once or twice is the same."""
    await read_nothing(request, parts.limits.json_body_bytes)
    await parts.settlement.suspend_instance((await _instance(gpu_instance_id, parts)).id)
    return _shown(await _instance(gpu_instance_id, parts), parts, caller)


@instances.post(
    "/{gpu_instance_id}/resume",
    **operation(
        "Resume a GPU instance",
        scope="admin",
        answers={200: Told("The instance as it is now.", GpuInstanceView)},
        refusals=[*READING_NOTHING, "operator-only", "not-found", "invalid-request"],
    ),
)
async def resume_instance(
    gpu_instance_id: GpuInstanceId, request: Request, parts: Parts, caller: Operator
) -> Response:
    """Its renter has the time that was left. Once or twice is the same."""
    await read_nothing(request, parts.limits.json_body_bytes)
    await parts.settlement.resume_instance((await _instance(gpu_instance_id, parts)).id)
    return _shown(await _instance(gpu_instance_id, parts), parts, caller)


@quotes.post(
    "",
    **operation(
        "Ask for a quote",
        scope="payments",
        body=AskQuote,
        answers={201: Told("The quote, and how to pay it.", QuoteView, ("Location",))},
        refusals=[
            *READING,
            "not-found",
            "instance-rented",
            "instance-suspended",
            "invalid-request",
            "payments-not-configured",
            "treasury-unknown",
        ],
    ),
)
async def ask_quote(request: Request, parts: Parts, caller: PaymentsKeeper) -> Response:
    """It costs nothing and binds nobody; its price is locked until `expires_at`. Each call makes another."""
    asked = await read_model(request, parts.limits.json_body_bytes, AskQuote)
    made = await parts.quoting.quote(caller.account, asked.gpu_instance_id, asked.asset, asked.seconds)
    return JSONResponse(quote_view(made), 201, {"Location": f"{quotes.prefix}/{made.offer.id}"})


@quotes.get(
    "",
    **operation(
        "List quotes",
        scope="payments",
        answers={200: Told("A page of quotes, newest first.", QuotePage)},
        refusals=["invalid-request"],
        parameters=[LIMIT, CURSOR],
    ),
)
async def list_quotes(request: Request, parts: Parts, caller: PaymentsKeeper) -> Response:
    """The account's."""
    asked = Query(request)
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.settlement.quotes(caller.account, limit + 1, before)
    return JSONResponse(page([quote_view(one) for one in found], [one.offer.id for one in found], limit))


@quotes.get(
    "/{quote_id}",
    **operation(
        "Look at a quote",
        scope="payments",
        answers={200: Told("The quote, and how far its payment is.", QuoteView)},
        refusals=["not-found"],
    ),
)
async def get_quote(quote_id: QuoteId, parts: Parts, caller: PaymentsKeeper) -> Response:
    """Seen, final, credited, each with its time and slot; `message` says in words what happens next."""
    return JSONResponse(quote_view(await _quote(quote_id, parts, caller)))


@quotes.get(
    "/{quote_id}/qr",
    **operation(
        "Draw a quote's QR code",
        scope="payments",
        answers={200: Told("Its Solana Pay URL as a QR code.", media_type=_SVG)},
        refusals=["not-found"],
    ),
)
async def draw_quote(quote_id: QuoteId, parts: Parts, caller: PaymentsKeeper) -> Response:
    """For a wallet's camera: black on white, with the margin that readers need."""
    found = await _quote(quote_id, parts, caller)
    drawn = await asyncio.to_thread(_drawn, solana_pay_url(found.offer))  # 12 ms of the processor
    return Response(drawn, media_type=_SVG)


def _drawn(url: str) -> bytes:
    svg = BytesIO()
    code = segno.make_qr(url, error="m")
    code.save(svg, kind="svg", scale=_PIXELS_A_MODULE, light="#fff", title="Solana Pay", xmldecl=False)
    return svg.getvalue()


async def _instance(gpu_instance_id: str, parts: ApiParts) -> GpuInstance:
    known = is_id(gpu_instance_id, "gpu")
    found = await parts.settlement.instance(gpu_instance_id) if known else None
    if found is None:
        raise unknown_instance(gpu_instance_id)
    return found


async def _quote(quote_id: str, parts: ApiParts, caller: Caller) -> Quote:
    known = is_id(quote_id, "quo")
    found = await parts.settlement.quote(caller.account, quote_id) if known else None
    if found is None:
        raise Refusal("not-found", f"There is no quote {quote_id[:80]} in this account.")
    return found


def _view(instance: GpuInstance, parts: ApiParts, caller: Caller) -> dict[str, object]:
    return instance_view(instance, parts.clock.now(), caller.account, is_operator=caller.is_operator)


def _shown(
    instance: GpuInstance,
    parts: ApiParts,
    caller: Caller,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    return JSONResponse(_view(instance, parts, caller), status, headers)
