"""What became of payments: each transaction, the ledger, and what a person has to look at."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse, StreamingResponse

from tempa.api.auth import Caller, Operator, PaymentsKeeper
from tempa.api.body import read_model, read_nothing
from tempa.api.head import is_head
from tempa.api.operation import (
    CURSOR,
    LIMIT,
    READING,
    READING_NOTHING,
    Told,
    TransactionSignature,
    operation,
    path_id,
    query,
)
from tempa.api.parts import ApiParts, Parts
from tempa.api.query import Query, page, place_text
from tempa.core import base58
from tempa.core.accounts import NAME_PATTERN, is_account_name
from tempa.core.clock import rfc3339
from tempa.core.errors import Problem, Refusal
from tempa.core.ids import is_id
from tempa.jobs.intake import invalid
from tempa.jobs.wire import Page
from tempa.settlement.anomalies import NO_SUCH_QUOTE, Anomaly, Redriven
from tempa.settlement.payments import Payment, share_of, words_of
from tempa.settlement.quotes import Quote
from tempa.settlement.views import LEDGER_COLUMNS, anomaly_view, ledger_view, payment_view
from tempa.settlement.wire import AnomalyRedriven, AnomalyView, LedgerLineView, PaymentView, Resolve

router = APIRouter(prefix="/v1", tags=["payments"])
# To be added before the other: a transaction's signature takes any name behind /v1/payments.
anomalies_router = APIRouter(prefix="/v1/payments/anomalies", tags=["payments"])

EVERYBODY = "*"
_CSV_PAGE = 500  # lines of one read: a few hundred kilobytes
_CSV_HEADERS = {"Content-Disposition": 'attachment; filename="ledger.csv"', "Cache-Control": "no-store"}

AnomalyId = Annotated[str, path_id("The anomaly.", "^ano_[0-9abcdefghjkmnpqrstvwxyz]{26}$")]


class LedgerPage(Page[LedgerLineView]):
    """A page of the ledger."""


class AnomalyPage(Page[AnomalyView]):
    """A page of anomalies."""


@router.get(
    "/payments/{signature}",
    **operation(
        "Look at a payment",
        scope="payments",
        answers={200: Told("How it stands, and what happens next.", PaymentView)},
        refusals=["not-found"],
    ),
)
async def get_payment(signature: TransactionSignature, parts: Parts, caller: PaymentsKeeper) -> Response:
    """Yours as soon as it was seen to name a quote of yours; the operator sees all that were heard of."""
    found = await _seen_by(caller, parts, signature) if base58.is_signature(signature) else None
    if found is None:
        detail = f"No payment {signature[:90]} is known in this account. It may not have been seen yet."
        raise Refusal("not-found", detail)
    return JSONResponse(payment_view(found, shows_anomalies=caller.is_operator))


async def _seen_by(caller: Caller, parts: ApiParts, signature: str) -> Payment | None:
    whole = await _known(parts, signature)
    if caller.is_operator:
        return whole if whole.is_known else None
    return share_of(whole, caller.account, await _quotes(parts, caller, whole))


async def _known(parts: ApiParts, signature: str) -> Payment:
    store = parts.settlement
    return Payment(
        signature=signature,
        heard=tuple(await store.inbox_of(signature)),
        receipts=tuple(await store.receipts_of(signature)),
        anomalies=tuple(await store.anomalies_of(signature)),
    )


async def _quotes(parts: ApiParts, caller: Caller, payment: Payment) -> list[Quote]:
    """The caller's quotes that a payment names."""
    store = parts.settlement
    named = await store.quotes_of(caller.account, payment.signature)
    waiting = {one.quote_id for one in payment.anomalies if one.quote_id is not None}
    others = waiting - {quote.offer.id for quote in named}
    found = [await store.quote(caller.account, quote_id) for quote_id in sorted(others)]
    return [*named, *(quote for quote in found if quote is not None)]


@router.get(
    "/ledger",
    **operation(
        "Read the ledger",
        scope="payments",
        answers={
            200: Told(
                "A page of credits, oldest first; as `csv` all of them, with the same columns.",
                LedgerPage,
                media_type="text/csv",
            )
        },
        refusals=["invalid-request", "operator-only"],
        parameters=[
            query("format", {"type": "string", "enum": ["json", "csv"]}, "Default json."),
            query(
                "account",
                {"type": "string", "pattern": rf"^({NAME_PATTERN}|\*)$"},
                f"For the operator: another account's, or `{EVERYBODY}` for all.",
            ),
            LIMIT,
            CURSOR,
        ],
    ),
)
async def read_ledger(request: Request, parts: Parts, caller: PaymentsKeeper) -> Response:
    """What was credited. It is only added to: a cursor stays good. `csv` gives all, so it takes none."""
    asked = Query(request)
    account = asked.text("account") or caller.account
    is_csv = asked.choice("format", ["json", "csv"]) == "csv"
    limit, after = (0, 0) if is_csv else (asked.limit(parts.limits.page_max), asked.place())
    asked.check()
    whose = _whose(caller, account)
    if is_csv:
        empty = is_head(request.scope)
        body = _nothing() if empty else _csv(parts, whose)
        return StreamingResponse(body, media_type="text/csv", headers=_CSV_HEADERS)
    lines = await parts.settlement.ledger(whose, after, limit + 1)
    places = [place_text(line.number) for line in lines]
    return JSONResponse(page([ledger_view(line) for line in lines], places, limit))


def _whose(caller: Caller, account: str) -> str | None:
    """None: everybody's."""
    if account != EVERYBODY and not is_account_name(account):
        raise invalid([Problem("/account", "Must be an account's name, or * for all.")])
    if account != caller.account and not caller.is_operator:
        raise Refusal("operator-only", "An account's key reads its own ledger only.")
    return None if account == EVERYBODY else account


async def _csv(parts: ApiParts, account: str | None) -> AsyncIterator[bytes]:
    """Page by page; should the store go away meanwhile, the answer breaks off where it would be short."""
    yield _rows([LEDGER_COLUMNS])
    after = 0
    while lines := await parts.settlement.ledger(account, after, _CSV_PAGE):
        yield _rows([tuple(ledger_view(line).values()) for line in lines])
        after = lines[-1].number


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


def _rows(rows: list[tuple[Any, ...]]) -> bytes:
    """RFC 4180, in UTF-8."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


@anomalies_router.get(
    "",
    **operation(
        "List anomalies",
        scope="admin",
        answers={200: Told("A page of those that are open, newest first.", AnomalyPage)},
        refusals=["operator-only", "invalid-request"],
        parameters=[LIMIT, CURSOR],
    ),
)
async def list_anomalies(request: Request, parts: Parts, _: Operator) -> Response:
    """Of all accounts: money that waits, lookups that come to nothing, calls that could not be taken."""
    asked = Query(request)
    limit, before = asked.limit(parts.limits.page_max), asked.cursor()
    asked.check()
    found = await parts.settlement.anomalies(limit + 1, before)
    return JSONResponse(page([anomaly_view(one) for one in found], [one.id for one in found], limit))


@anomalies_router.get(
    "/{anomaly_id}",
    **operation(
        "Look at an anomaly",
        scope="admin",
        answers={200: Told("With the whole call that told of it.", AnomalyView)},
        refusals=["operator-only", "not-found"],
    ),
)
async def get_anomaly(anomaly_id: AnomalyId, parts: Parts, _: Operator) -> Response:
    """Those that are resolved, too."""
    return JSONResponse(anomaly_view(await _anomaly(parts, anomaly_id)))


@anomalies_router.post(
    "/{anomaly_id}/redrive",
    **operation(
        "Try an anomaly again",
        scope="admin",
        answers={200: Told("What it came to.", AnomalyRedriven)},
        refusals=[*READING_NOTHING, "operator-only", "invalid-request", "not-found", "conflict"],
    ),
)
async def redrive_anomaly(anomaly_id: AnomalyId, request: Request, parts: Parts, _: Operator) -> Response:
    """Money that waits is tried by the rules that hold now; where none came yet, the chain is asked again."""
    await read_nothing(request, parts.limits.json_body_bytes)
    _still_open(await _anomaly(parts, anomaly_id))
    outcome = await parts.settlement.redrive_anomaly(anomaly_id, parts.terms)
    after = await _anomaly(parts, anomaly_id)
    if outcome is Redriven.UNKNOWN:
        _still_open(after)
    view = {"id": anomaly_id, "outcome": str(outcome), "message": _redriven(outcome, after)}
    return JSONResponse(view)


def _redriven(outcome: Redriven, anomaly: Anomaly) -> str:
    if outcome is Redriven.CREDITED:
        return "Its money was given to its quote."
    if outcome is Redriven.REQUEUED:
        return "The chain is asked again; GET /v1/payments/{signature} shows what comes of it."
    return f"It waits as before. {words_of(anomaly.reason) or ''}".rstrip()


@anomalies_router.post(
    "/{anomaly_id}/resolve",
    **operation(
        "Resolve an anomaly",
        scope="admin",
        body=Resolve,
        answers={200: Told("The anomaly as it stands then.", AnomalyView)},
        refusals=[*READING, "operator-only", "invalid-request", "not-found", "conflict"],
    ),
)
async def resolve_anomaly(anomaly_id: AnomalyId, request: Request, parts: Parts, _: Operator) -> Response:
    """Closes it, with words that stay on record; with `quote_id` only if that one could take its money."""
    asked = await read_model(request, parts.limits.json_body_bytes, Resolve)
    await _anomaly(parts, anomaly_id)
    done = await parts.settlement.resolve_anomaly(anomaly_id, asked.resolution, parts.terms, asked.quote_id)
    assert done.anomaly is not None, "no anomaly is ever deleted"
    if done.was_resolved:
        _still_open(done.anomaly)
    if done.refusal == NO_SUCH_QUOTE:
        raise Refusal("not-found", f"There is no quote {(asked.quote_id or '')[:80]}.")
    if done.refusal is not None:
        detail = f"It stays open: its money cannot be given to that quote. {words_of(done.refusal)}"
        raise Refusal("conflict", detail, extra={"reason": done.refusal})
    return JSONResponse(anomaly_view(done.anomaly))


async def _anomaly(parts: ApiParts, anomaly_id: str) -> Anomaly:
    found = await parts.settlement.anomaly(anomaly_id) if is_id(anomaly_id, "ano") else None
    if found is None:
        raise Refusal("not-found", f"There is no anomaly {anomaly_id[:80]}.")
    return found


def _still_open(anomaly: Anomaly) -> None:
    if anomaly.resolved_at is not None:
        detail = f"It was resolved at {rfc3339(anomaly.resolved_at)}: {anomaly.resolution}"
        raise Refusal("conflict", detail)
