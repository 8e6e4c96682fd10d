"""Documenting a route: what it takes, what it answers, how it refuses.

Routes validate by hand, so that they can be strict and tell every problem at once; FastAPI is told
here what they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import BaseModel

from tempa.api.problems import MEDIA_TYPE
from tempa.api.query import CURSOR_PATTERN
from tempa.core.errors import PROBLEMS
from tempa.jobs.wire import Ticket

READING = ("body-too-large", "unsupported-media-type", "unreadable-json")
READING_NOTHING = ("body-too-large", "unreadable-json")
RENTED = (
    "rental-required",
    "instance-rented",
    "instance-suspended",
)  # to a job that names a gpu_instance_id
_KEYS = ("malformed-key", "unknown-key", "revoked-key")
ANY_SCOPE = "any"
EVENT_STREAM = (
    "text/event-stream"  # OpenAPI 3.1 has no words for its events; readers take a schema for theirs
)

_ID = "^{}_[0-9abcdefghjkmnpqrstvwxyz]{{26}}$"
_JOB_ID = _ID.format("[a-z]{2,6}")


def path_id(what: str, pattern: str = _JOB_ID) -> Any:
    """A path parameter: documented, never validated by FastAPI (a malformed id is a 404, not a 422)."""
    return Path(description=what, json_schema_extra={"pattern": pattern})


JobId = Annotated[str, path_id("The job.")]
EndpointId = Annotated[str, path_id("The endpoint.", _ID.format("ep"))]
DeliveryId = Annotated[str, path_id("The delivery.", _ID.format("dlv"))]
KeyId = Annotated[str, path_id("The key.", _ID.format("key"))]
GpuInstanceId = Annotated[str, path_id("The instance.", _ID.format("gpu"))]
QuoteId = Annotated[str, path_id("The quote.", _ID.format("quo"))]
TransactionSignature = Annotated[str, path_id("The transaction.", "^[1-9A-HJ-NP-Za-km-z]{64,88}$")]

_HEADERS: Mapping[str, tuple[dict[str, Any], str]] = {
    "Location": ({"type": "string"}, "Where what was made is."),
    "Retry-After": (
        {"type": "string"},
        "Seconds to wait before asking again, while the job can still change.",
    ),
    "ETag": ({"type": "string"}, "Names what was answered; send it as If-None-Match."),
    "Idempotency-Replayed": ({"type": "string", "enum": ["true"]}, "This request was answered before."),
    "Accept-Ranges": ({"type": "string"}, "bytes"),
    "Content-Disposition": ({"type": "string"}, "attachment, with the file's name"),
    "Content-Range": ({"type": "string"}, "Which bytes of how many."),
}


@dataclass(frozen=True, slots=True)
class Told:
    """One answer: what it means, its body, its headers (names of `_HEADERS`)."""

    description: str
    model: Any = None
    headers: tuple[str, ...] = ()
    media_type: str | None = None  # of a body that is no model


TICKET_ANSWERS: Mapping[int, Told] = {
    202: Told("A new job was stored.", Ticket, ("Location", "Retry-After")),
    200: Told("The job that stands.", Ticket, ("Location", "Retry-After", "Idempotency-Replayed")),
}


def operation(
    summary: str,
    *,
    scope: str | None,
    answers: Mapping[int, Told],
    refusals: Sequence[str] = (),
    parameters: Sequence[Mapping[str, Any]] = (),
    body: type[BaseModel] | Mapping[str, Any] | None = None,
    body_optional: bool = False,
    token: bool = False,
) -> dict[str, Any]:
    """Keyword arguments for a route's decorator.

    `scope` is what the API key must have: `ANY_SCOPE` for any key, None where no key is needed.
    `refusals` are slugs of `PROBLEMS`, beside those that every such route may answer. `token`: a
    job's token will do as well.
    """
    extra: dict[str, Any] = {"parameters": list(parameters)}
    if scope is not None:
        extra["security"] = [{"apiKey": [] if scope == ANY_SCOPE else [scope]}, *([{"jobToken": []}] * token)]
    if body is not None:
        extra["requestBody"] = {"required": not body_optional, "content": _content(body)}
    slugs = dict.fromkeys([*refusals, *_usual(scope, token=token)])
    return {
        "summary": summary,
        "status_code": next(iter(answers)),
        "response_class": Response,
        "response_model": None,
        "responses": _refused(slugs) | {status: _answer(told) for status, told in answers.items()},
        "openapi_extra": extra,
    }


def query(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    """A query parameter."""
    return {"name": name, "in": "query", "schema": dict(schema), "description": description}


def header(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    """A request header."""
    return {"name": name, "in": "header", "schema": dict(schema), "description": description}


IDEMPOTENCY_KEY = header(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "Names the request: sent again with the same key, it gives the same job. Quoted or bare.",
)
LIMIT = query(
    "limit",
    {"type": "integer", "minimum": 1},
    "Items on a page, at most `page_max` (GET /v1/limits); default 50.",
)
CURSOR = query(
    "cursor", {"type": "string", "pattern": CURSOR_PATTERN}, "The `next_cursor` of the page before."
)
WAIT = query(
    "wait",
    {"type": "number", "minimum": 0},
    "Hold the answer until there is news, for this many seconds at most. "
    "At most `wait_seconds_max` (GET /v1/limits).",
)
IF_NONE_MATCH = header(
    "If-None-Match", {"type": "string"}, "ETags the client holds: 304 if one is still right."
)


def _usual(scope: str | None, *, token: bool) -> Iterable[str]:
    if scope is None:
        return ("internal",)
    scoped = () if scope == ANY_SCOPE else ("missing-scope",)
    tokens = ("invalid-token",) * token
    return (*_KEYS, *tokens, *scoped, "too-many-requests", "internal", "store-unavailable")


def _content(body: type[BaseModel] | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(body, Mapping):
        return body
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}


def _answer(told: Told) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": told.description}
    if told.model is not None:
        answer["model"] = told.model
    if told.media_type is not None:
        schema = {} if told.media_type == EVENT_STREAM else {"type": "string"}
        answer["content"] = {told.media_type: {"schema": schema}}
    if told.headers:
        answer["headers"] = {
            name: {"schema": _HEADERS[name][0], "description": _HEADERS[name][1]} for name in told.headers
        }
    return answer


def _refused(slugs: Iterable[str]) -> dict[int | str, Any]:
    by_status: dict[int, list[str]] = {}
    for slug in slugs:
        by_status.setdefault(PROBLEMS[slug].status, []).append(slug)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    return {
        status: {
            "description": " ".join(f"`{slug}`: {PROBLEMS[slug].title}." for slug in group),
            "content": content,
        }
        for status, group in sorted(by_status.items())
    }
