"""The OpenAPI 3.1 document: what the routes say of themselves, and the webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from tempa.api.keys import NewKey
from tempa.api.problems import ERRORS_MAX
from tempa.api.schema_limits import SCHEMAS, say_limits
from tempa.core.errors import PROBLEMS
from tempa.core.events import FAMILIES, OPERATOR_EVENTS, TEST_EVENT
from tempa.jobs.wire import ANNOUNCED, Convert, GenerateModel, GenerateSplat
from tempa.settlement.wire import AddInstance, AskQuote, AskRefund, ChangePrices, GiveUpRefund, Resolve
from tempa.webhooks.wire import (
    ChangeEndpoint,
    Discard,
    NoticeBody,
    Redrive,
    RegisterEndpoint,
    RotateSecret,
    WebhookBody,
)

# The example of the first source recipe, as it stands: template flanged-tube@1.
FLANGED_TUBE = {
    "engine": "opencascade-brep",
    "export_format": "step",
    "parameters": {
        "outer_diameter": 120.5,
        "inner_diameter": 45.0,
        "length": 300.0,
        "fillet_radius": 2.5,
        "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
    },
}

_REQUESTS = (
    GenerateModel,
    GenerateSplat,
    Convert,
    RegisterEndpoint,
    ChangeEndpoint,
    RotateSecret,
    Redrive,
    Discard,
    AddInstance,
    ChangePrices,
    AskQuote,
    Resolve,
    AskRefund,
    GiveUpRefund,
    NewKey,
    WebhookBody,
    NoticeBody,
)
_OF_JOBS = "POSTed to the job's `webhook_url` and to registered endpoints that want it, at least once."
_OF_WEBHOOKS = "POSTed to registered endpoints that name it, at least once."
_OF_A_TEST = "POSTed to one registered endpoint at its owner's wish."
_SECURITY = {
    "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key: `tempa_sk_...`."},
    "jobToken": {"type": "apiKey", "in": "query", "name": "token", "description": "For one job, read-only."},
}
_WEBHOOK_HEADERS = {
    "webhook-id": "The event's id: the same in every attempt. Drop what you have seen.",
    "webhook-timestamp": "This attempt's time, Unix seconds.",
    "webhook-signature": "`v1,<base64>` by Standard Webhooks; several, space-separated, in a rotation.",
    "X-Webhook-Signature": "HMAC-SHA256 of the body in hex, keyed with the whole secret.",
}


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    pointer: str = Field(description="JSON pointer into the body; in a query, the parameter: `/limit`.")
    message: str
    limit: float | str | None = Field(description="The limit that was broken, if there is one.")
    code: str | None = Field(None, description="Of the table of job codes, for what is wrong with a file.")


class ProblemDetails(BaseModel):
    """An answer that refuses (RFC 9457). `errors` lists all faults at once, up to a hundred."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:tempa:problem:invalid-request"], pattern="^urn:tempa:problem:[a-z-]+$")
    title: str
    status: int
    detail: str
    code: str = Field(examples=sorted({slug.upper().replace("-", "_") for slug in PROBLEMS}))
    errors: list[Fault] = Field(max_length=ERRORS_MAX)
    errors_not_listed: int | None = Field(None, description="How many faults there were beyond those listed.")


def document(app: FastAPI) -> dict[str, Any]:
    """The document, made once for an app."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
            servers=app.servers,
        )
        for operation in _operations(made):
            _drop_framework_errors(operation)
        made["components"]["schemas"] = _schemas(made["components"]["schemas"])
        made["components"]["securitySchemes"] = _SECURITY
        say_limits(made, app.state.parts)
        made["webhooks"] = dict(_webhooks())
        app.openapi_schema = made
    return app.openapi_schema


def _operations(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in made["paths"].values():
        yield from item.values()


def _drop_framework_errors(operation: dict[str, Any]) -> None:
    """FastAPI documents a 422 of its own for every route with a parameter; ours validate by hand."""
    if "HTTPValidationError" in str(operation["responses"].get("422")):
        del operation["responses"]["422"]


def _schemas(found: dict[str, Any]) -> dict[str, Any]:
    requests = [(model, "validation") for model in _REQUESTS]
    answers = [(ProblemDetails, "serialization")]
    _, made = models_json_schema([*requests, *answers], ref_template=SCHEMAS + "{model}")  # type: ignore[list-item]
    made["$defs"]["GenerateModel"]["examples"] = [FLANGED_TUBE]
    every = {**found, **made["$defs"]}
    return {name: every[name] for name in sorted(every) if not name.endswith("ValidationError")}


def _webhooks() -> Iterator[tuple[str, dict[str, Any]]]:
    for family in FAMILIES:
        for verb in ANNOUNCED:
            yield f"{family}.{verb}", {"post": _webhook(f"{family}.{verb}", _OF_JOBS, WebhookBody)}
    for name in OPERATOR_EVENTS:
        yield name, {"post": _webhook(name, _OF_WEBHOOKS, NoticeBody)}
    yield TEST_EVENT, {"post": _webhook(TEST_EVENT, _OF_A_TEST, NoticeBody)}


def _webhook(name: str, description: str, body: type[BaseModel]) -> dict[str, Any]:
    return {
        "summary": name,
        "operationId": "webhook_" + name.replace(".", "_"),
        "description": f"{description} Verify it before you trust it.",
        "tags": ["webhooks"],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "schema": {"type": "string"},
                "description": text,
            }
            for name, text in _WEBHOOK_HEADERS.items()
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": SCHEMAS + body.__name__}}},
        },
        "responses": {
            "2XX": {"description": "Taken. Answer before you work on it."},
            "4XX": {"description": "Refused for good, but for 408 and 429, which are tried again."},
            "5XX": {"description": "Tried again, with growing waits."},
        },
    }
