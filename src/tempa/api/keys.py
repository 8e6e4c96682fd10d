"""API keys: made once, shown once, revoked at once."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.responses import JSONResponse

from tempa.api.auth import Admin, key_ring
from tempa.api.body import read_model
from tempa.api.operation import READING, KeyId, Told, operation
from tempa.api.parts import Parts
from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.clock import rfc3339
from tempa.core.errors import Refusal
from tempa.core.ids import is_id, new_id
from tempa.jobs.wire import Answer, Page, Strict

router = APIRouter(prefix="/v1/keys", tags=["keys"])

Scope = Literal["jobs:write", "jobs:read", "webhooks", "payments", "admin"]


class NewKey(Strict):
    """Body of `POST /v1/keys`."""

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    scopes: list[Scope] = Field(min_length=1, max_length=16, description="`admin` may do all.")


class KeyView(Answer):
    """A key, without its secret."""

    id: str
    name: str
    hint: str = Field(description="How the key begins.")
    scopes: list[str]
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")


class MadeKey(KeyView):
    """A key that was just made."""

    api_key: str = Field(description="Shown this once; only its hash is kept.")


class KeyPage(Page[KeyView]):
    """All keys of an account."""


@router.post(
    "",
    **operation(
        "Make an API key",
        scope="admin",
        body=NewKey,
        answers={201: Told("The key, with its secret.", MadeKey)},
        refusals=[*READING, "invalid-request"],
    ),
)
async def make_key(request: Request, parts: Parts, caller: Admin) -> Response:
    """A key of the caller's account."""
    asked = await read_model(request, parts.limits.json_body_bytes, NewKey)
    secret = new_secret_key()
    key = ApiKey(
        id=new_id("key"),
        account=caller.account,
        name=asked.name,
        hint=hint(secret),
        digest=digest(secret),
        scopes=tuple(dict.fromkeys(asked.scopes)),
        created_at=parts.clock.now(),
    )
    await parts.keys.add_key(key)
    return JSONResponse({**_view(key), "api_key": secret}, 201, {"Cache-Control": "no-store"})


@router.get(
    "",
    **operation(
        "List API keys",
        scope="admin",
        answers={200: Told("All keys of the account, revoked ones too.", KeyPage)},
    ),
)
async def list_keys(parts: Parts, caller: Admin) -> Response:
    """Without their secrets."""
    keys = await parts.keys.keys(caller.account)
    return JSONResponse({"items": [_view(key) for key in keys], "next_cursor": None})


@router.delete(
    "/{key_id}",
    **operation(
        "Revoke an API key",
        scope="admin",
        answers={204: Told("It is refused from now on.")},
        refusals=["not-found"],
    ),
)
async def revoke_key(key_id: KeyId, request: Request, parts: Parts, caller: Admin) -> Response:
    """It stops at once in this process, and within five seconds in all others."""
    found = is_id(key_id) and await parts.keys.revoke_key(caller.account, key_id)
    key_ring(request).forget(key_id)
    if not found:
        raise Refusal("not-found", f"There is no key {key_id[:80]} in this account.")
    return Response(status_code=204)


def _view(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "created_at": rfc3339(key.created_at),
        "revoked_at": _time(key.revoked_at),
        "last_used_at": _time(key.last_used_at),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
