"""Where providers tell of payments. Without an API key: each call is judged by its source's own secret."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.responses import JSONResponse

from tempa.api.operation import READING, Told, header, operation
from tempa.api.parts import ApiParts, Parts
from tempa.api.unpacking import Unpacker, unpack
from tempa.core.errors import Refusal
from tempa.settlement.ingress import Call, NotAuthentic, Source
from tempa.settlement.wire import CallTaken

router = APIRouter(prefix="/v1/payments/ingress", tags=["payments"])

_SOURCE = Path(description="Who calls: `helius`, `quicknode` or `generic`, if it has a secret here.")
_ANY_JSON = {"application/json": {"schema": {"description": "As the provider sends it."}}}
_CODINGS = {"type": "string", "enum": ["gzip", "deflate", "identity"]}
_CODING = header("Content-Encoding", _CODINGS, "How the body is packed, if it is.")


@router.post(
    "/{source}",
    **operation(
        "Tell of payments",
        scope=None,
        body=_ANY_JSON,
        answers={200: Told("It is stored; new and known signatures alike.", CallTaken)},
        refusals=["not-authentic", "not-found", *READING, "store-unavailable"],
        parameters=[_CODING],
    ),
)
async def hear_call(source: Annotated[str, _SOURCE], request: Request, parts: Parts) -> Response:
    """Only signatures of transactions are taken from it; what they pay, the chain is asked.

    `helius`: the secret in `Authorization`. `quicknode`: `x-qn-signature` over nonce, timestamp and the
    unpacked body. `generic`: a Standard Webhooks signature over `{"signature"}` or `{"signatures": []}`.
    """
    found = parts.calls.source(source)
    if found is None:
        raise Refusal("not-found", f"No source {source[:80]} is set up here (payments.<source>.secret).")
    body = await _body(request, parts, found)
    try:
        taken = await parts.calls.take_in(found, Call(_headers(request), body, parts.clock.now()))
    except NotAuthentic:
        detail = "The secret or signature is not this source's, or the call is too old or from the future."
        raise Refusal("not-authentic", detail, headers={"WWW-Authenticate": "Webhook"}) from None
    return JSONResponse(taken._asdict())


async def _body(request: Request, parts: ApiParts, source: Source) -> bytes:
    limit = parts.limits.json_body_bytes
    head = bytearray()
    try:
        unpacker = Unpacker(_headers(request).get("content-encoding", ""), limit)
        head = unpacker.head
        return await unpack(request, unpacker, limit)
    except Refusal as refusal:
        too_large = refusal.slug == "body-too-large"
        await parts.calls.refused(source, too_large=too_large, detail=refusal.detail, sample=bytes(head))
        raise


def _headers(request: Request) -> dict[str, str]:
    """By name; one that is there twice as one list (RFC 9110 section 5.3), so that no reader takes a half."""
    joined: dict[str, str] = {}
    for name, value in request.headers.items():
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
