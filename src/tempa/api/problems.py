"""Every refusal in one form: problem+json (RFC 9457)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tempa.core.errors import Problem, Refusal, StoreUnavailable
from tempa.core.ids import new_id
from tempa.jobs.intake import invalid

MEDIA_TYPE = "application/problem+json"

_log = logging.getLogger(__name__)

# A request of 1 MiB may be wrong in 80,000 places: told all, it was answered with 123 MB.
ERRORS_MAX = 100
_POINTER_LENGTH_MAX = 256
_MESSAGE_LENGTH_MAX = 1000
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_STORE_RETRY_SECONDS = 2


def install(app: FastAPI) -> None:
    """Answer every exception that a request may end in."""
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(StoreUnavailable, _store_is_away)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(ClientDisconnect, _client_left)


def problem_answer(refusal: Refusal) -> Response:
    """The answer that a refusal is: of bounded length, whatever was asked."""
    body = json.dumps(_document(refusal), ensure_ascii=False, allow_nan=False).encode()
    return Response(body, refusal.status, dict(refusal.headers), MEDIA_TYPE)


def _document(refusal: Refusal) -> dict[str, Any]:
    told = tuple(_in_short(refusal.errors[:ERRORS_MAX]))
    document = replace(refusal, errors=told, detail=_cut(refusal.detail, _MESSAGE_LENGTH_MAX)).as_dict()
    if beyond := len(refusal.errors) - len(told):
        document["detail"] = f"{len(refusal.errors)} problems were found; the first {ERRORS_MAX} are listed."
        document["errors_not_listed"] = beyond
    return document


def _in_short(problems: Sequence[Problem]) -> Iterator[Problem]:
    """A message that was there before is told by its first sentence: what is known or offered, once."""
    before: set[str] = set()
    for problem in problems:
        first, dot, _ = problem.message.partition(". ")
        message = first + dot.strip() if problem.message in before else problem.message
        before.add(problem.message)
        pointer = _cut(problem.pointer, _POINTER_LENGTH_MAX)
        yield Problem(pointer, _cut(message, _MESSAGE_LENGTH_MAX), problem.limit, problem.code)


def _cut(text: str, length_max: int) -> str:
    """Names of fields, and so pointers and messages, may be as long as the request is."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


class Shield:
    """The outermost net: whatever nobody expected is logged with a reference and answered 500."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            if scope["type"] != "http":
                raise
            answer = _internal(scope)
            if started:  # the client must see a broken answer, not a short one
                raise
            await answer(scope, receive, send)


def _internal(scope: Scope) -> Response:
    """The path goes to the log without its query: that may hold a token."""
    reference = new_id("log")
    extra = {"reference": reference, "method": scope["method"], "path": scope["path"]}
    _log.exception("a request failed for a fault of ours", extra=extra)
    detail = f"A fault of Tempa's own. Tell the operator this reference: {reference}."
    return problem_answer(Refusal("internal", detail, extra={"reference": reference}))


async def _refused(_: Request, error: Exception) -> Response:
    return problem_answer(cast("Refusal", error))


async def _store_is_away(_: Request, __: Exception) -> Response:
    detail = "The store cannot be reached or written at the moment; nothing was changed. Ask again."
    return problem_answer(
        Refusal("store-unavailable", detail, headers={"Retry-After": str(_STORE_RETRY_SECONDS)})
    )


async def _not_routed(request: Request, error: Exception) -> Response:
    """No such path, or no such method on it. `Allow` names all of them, not those of one route only."""
    status = cast("HTTPException", error).status_code
    if status == 405:
        allowed = ", ".join(_allowed_methods(request))
        detail = f"{request.method} is not allowed here. Allowed: {allowed}."
        return problem_answer(Refusal("method-not-allowed", detail, headers={"Allow": allowed}))
    if status == 404:
        return problem_answer(Refusal("not-found", "There is no such path. GET /openapi.json lists all."))
    raise error  # nothing of ours raises another: a surprise


def _allowed_methods(request: Request) -> list[str]:
    routes = request.app.router.routes
    served = [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ["GET", "HEAD", *served[1:]] if "GET" in served and "HEAD" not in served else served


async def _not_valid(_: Request, error: Exception) -> Response:
    """FastAPI validates nothing of ours; should it ever, the answer is in our form."""
    found = cast("RequestValidationError", error).errors()
    problems = [Problem("".join(f"/{part}" for part in one["loc"][1:]), f"{one['msg']}.") for one in found]
    return problem_answer(invalid(problems))


async def _client_left(_: Request, __: Exception) -> Response:
    """Nobody is there to read it."""
    return Response(status_code=499)
