"""Refunds: the operator has money that waits sent back, to a wallet that whoever paid has named."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Operator
from tempa.api.body import read_model
from tempa.api.operation import CURSOR, LIMIT, READING, Told, operation, path_id
from tempa.api.parts import ApiParts, Parts
from tempa.api.query import Query, page
from tempa.core.clock import rfc3339
from tempa.core.errors import Problem, Refusal
from tempa.core.ids import is_id, new_id
from tempa.jobs.intake import invalid
from tempa.jobs.wire import Page
from tempa.settlement.anomalies import Anomaly
from tempa.settlement.refund_views import refund_view
from tempa.settlement.refunds import NewRefund, Refund
from tempa.settlement.wire import AskRefund, GiveUpRefund, RefundView

# To be added before the payments': a transaction's signature takes any name behind /v1/payments.
router = APIRouter(prefix="/v1/payments/refunds", tags=["payments"])

RefundId = Annotated[str, path_id("The refund.", "^ref_[0-9abcdefghjkmnpqrstvwxyz]{26}$")]


class RefundPage(Page[RefundView]):
    """A page of refunds."""


@router.post(
    "",
    **operation(
        "Ask for a refund",
        scope="admin",
        body=AskRefund,
        answers={202: Told("It is to be sent back.", RefundView, ("Location",))},
        refusals=[
            *READING,
            "operator-only",
            "invalid-request",
            "not-found",
            "conflict",
            "payments-not-configured",
        ],
    ),
)
async def ask_refund(request: Request, parts: Parts, _: Operator) -> Response:
    """Of all that an anomaly has. Asked for once: who comes second, or again, gets 409. It costs a fee."""
    asked = await read_model(request, parts.limits.json_body_bytes, AskRefund)
    _allowed(parts)
    _not_ours(parts, asked.recipient)
    anomaly = await _anomaly(parts, asked)
    new = NewRefund(
        id=new_id("ref"), anomaly_id=anomaly.id, destination=asked.recipient, note=asked.note or ""
    )
    refund = await parts.settlement.request_refund(new)
    if refund is None:
        raise Refusal("conflict", _why_not(await parts.settlement.anomaly(anomaly.id) or anomaly))
    return JSONResponse(refund_view(refund), 202, {"Location": f"{router.prefix}/{refund.id}"})


def _allowed(parts: ApiParts) -> None:
    if not parts.refunds:
        raise Refusal("conflict", "Refunds are off. Set payments.refunds = true to have money sent back.")


def _not_ours(parts: ApiParts, recipient: str) -> None:
    """Money that goes from the treasury to itself has been sent back to nobody."""
    seen = parts.standing()
    if seen is None:
        raise Refusal("payments-not-configured", "Set solana.treasury and solana.rpc_urls first.")
    if recipient in {seen.wallet, *(row.address for row in seen.accounts)}:
        raise invalid([Problem("/recipient", "This is the treasury itself.")])


async def _anomaly(parts: ApiParts, asked: AskRefund) -> Anomaly:
    if (asked.anomaly_id is None) == (asked.signature is None):
        raise invalid([Problem("", "Name what is sent back: anomaly_id or signature, and not both.")])
    if asked.signature is not None:
        return await _anomaly_of(parts, asked.signature)
    name = asked.anomaly_id or ""
    found = await parts.settlement.anomaly(name) if is_id(name, "ano") else None
    if found is None:
        raise Refusal("not-found", f"There is no anomaly {name[:80]}.")
    return found


async def _anomaly_of(parts: ApiParts, signature: str) -> Anomaly:
    """The one in which money of a payment waits, or has waited."""
    known = [one for one in await parts.settlement.anomalies_of(signature) if one.receipt is not None]
    if not known:
        raise Refusal("not-found", f"No money of {signature[:90]} waits here.")
    waiting = [one for one in known if one.resolved_at is None]
    if len(waiting) > 1:
        names = ", ".join(one.id for one in waiting)
        raise Refusal("conflict", f"Money of it waits in several anomalies; name one: {names}")
    return (waiting or known)[-1]


def _why_not(anomaly: Anomaly) -> str:
    if anomaly.resolved_at is not None:
        return f"Nothing waits there: it was resolved at {rfc3339(anomaly.resolved_at)}: {anomaly.resolution}"
    return "It has no money in the ledger that could be sent back. What is not credited is moved by hand."


@router.get(
    "",
    **operation(
        "List refunds",
        scope="admin",
        answers={200: Told("A page of all of them, newest first.", RefundPage)},
        refusals=["operator-only", "invalid-request"],
        parameters=[LIMIT, CURSOR],
    ),
)
async def list_refunds(request: Request, parts: Parts, _: Operator) -> Response:
    """Also those that have ended."""
    asked = Query(request)
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.settlement.refunds(limit + 1, before)
    return JSONResponse(page([refund_view(one) for one in found], [one.id for one in found], limit))


@router.get(
    "/{refund_id}",
    **operation(
        "Look at a refund",
        scope="admin",
        answers={200: Told("How far it is, with its transactions.", RefundView)},
        refusals=["operator-only", "not-found"],
    ),
)
async def get_refund(refund_id: RefundId, parts: Parts, _: Operator) -> Response:
    """Every transaction that was ever signed for it is shown."""
    return JSONResponse(refund_view(await _refund(parts, refund_id)))


@router.post(
    "/{refund_id}/give-up",
    **operation(
        "Give a refund up",
        scope="admin",
        body=GiveUpRefund,
        answers={200: Told("The refund, as it ended.", RefundView)},
        refusals=[*READING, "operator-only", "invalid-request", "not-found", "conflict"],
    ),
)
async def give_up_refund(refund_id: RefundId, request: Request, parts: Parts, _: Operator) -> Response:
    """Only while nothing of it can land. Its money waits in the anomaly again."""
    asked = await read_model(request, parts.limits.json_body_bytes, GiveUpRefund)
    refund = await _refund(parts, refund_id)
    given_up = await parts.settlement.give_up_refund(refund.id, asked.reason)
    if given_up is None:
        raise Refusal("conflict", _why_kept(await _refund(parts, refund_id)))
    return JSONResponse(refund_view(given_up))


def _why_kept(refund: Refund) -> str:
    if refund.ended_at is not None:
        return f"It has ended already: it is {refund.state} since {rfc3339(refund.ended_at)}."
    return "A transaction of it is signed, and may land. Wait until it is final, or has expired."


async def _refund(parts: ApiParts, refund_id: str) -> Refund:
    found = await parts.settlement.refund(refund_id) if is_id(refund_id, "ref") else None
    if found is None:
        raise Refusal("not-found", f"There is no refund {refund_id[:80]}.")
    return found
