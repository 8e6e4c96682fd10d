"""Proofs of credit: what shows by itself that a payment was taken, and what it bought."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from tempa.api.auth import PaymentsKeeper
from tempa.api.operation import Told, TransactionSignature, operation
from tempa.api.parts import Parts
from tempa.core import base58
from tempa.core.errors import Refusal
from tempa.settlement.proof_document import ProofView

router = APIRouter(prefix="/v1/payments", tags=["payments"])


@router.get(
    "/{signature}/proof",
    **operation(
        "Prove a payment",
        scope="payments",
        answers={200: Told("All that it takes to check it elsewhere.", ProofView)},
        refusals=["not-found", "payments-not-configured", "treasury-unknown"],
    ),
)
async def get_proof(signature: TransactionSignature, parts: Parts, caller: PaymentsKeeper) -> Response:
    """Of what was credited to you; the operator's shows all that came in."""
    account = None if caller.is_operator else caller.account
    proof = await parts.proofs.proof(signature, account) if base58.is_signature(signature) else None
    if proof is None:
        raise Refusal(
            "not-found", f"Nothing of the transaction {signature[:90]} was credited to this account."
        )
    return JSONResponse(proof, headers={"Cache-Control": "no-store"})
