"""Where payments go, and which nodes tell of them."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Operator
from tempa.api.operation import Told, operation
from tempa.api.parts import Parts
from tempa.core.errors import Refusal
from tempa.settlement.standing import standing_view
from tempa.settlement.wire import TreasuryView

# To be added before the payments': a transaction's signature takes any name behind /v1/payments.
router = APIRouter(prefix="/v1/payments/treasury", tags=["payments"])


@router.get(
    "",
    **operation(
        "Look at the treasury",
        scope="admin",
        answers={200: Told("As it was last seen, and the nodes that told of it.", TreasuryView)},
        refusals=["operator-only", "payments-not-configured"],
    ),
)
async def get_treasury(parts: Parts, _: Operator) -> Response:
    """Whether payments are credited now, to which accounts, and why not. It asks no node."""
    found = parts.standing()
    if found is None:
        raise Refusal("payments-not-configured", "Set solana.treasury and solana.rpc_urls to take payments.")
    due_at = await parts.settlement.next_lookup()
    return JSONResponse(standing_view(found, due_at, parts.clock.now()))
