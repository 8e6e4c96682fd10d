"""The app: all routes, every answer in one form."""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from tempa.api import (
    artifacts,
    catalogue,
    endpoints,
    events,
    files,
    generate,
    ingress,
    jobs,
    keys,
    openapi,
    operations,
    payments,
    problems,
    proofs,
    refunds,
    rentals,
    stream,
    treasury,
    webhook_stream,
    webhooks,
)
from tempa.api.auth import KeyRing
from tempa.api.head import HeadAsGet
from tempa.api.parts import ApiParts
from tempa.api.rates import Rates
from tempa.api.trace import TraceContext

_ROUTERS = (
    generate.router,
    jobs.router,
    stream.router,
    events.router,
    files.router,
    artifacts.router,
    webhooks.router,
    endpoints.router,
    endpoints.public_router,
    webhook_stream.router,
    rentals.instances,
    rentals.quotes,
    ingress.router,
    treasury.router,
    payments.anomalies_router,
    refunds.router,
    payments.router,
    proofs.router,
    keys.router,
    catalogue.router,
    operations.router,
)
_ALLOW_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
    "traceparent",
)
_EXPOSE_HEADERS = (
    "Content-Disposition",
    "Content-Range",
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Retry-After",
)


def create_app(parts: ApiParts, *, operations_only: bool = False) -> FastAPI:
    """The ASGI app that serves `parts`; `operations_only` for a process without the API's role."""
    app = FastAPI(
        title="Tempa",
        summary="A durable job server for geometry that takes minutes",
        version=parts.version,
        servers=[{"url": parts.public_url}],
        redirect_slashes=False,  # a POST that is redirected loses its body in many clients
        generate_unique_id_function=lambda route: route.name,  # what generated clients call their methods
        docs_url=None,  # both pages load their scripts from a CDN
        redoc_url=None,
        # Its spans would record whole queries, tokens and signatures of links included.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.parts = parts
    app.state.key_ring = KeyRing(parts.keys, parts.clock)
    app.state.rates = Rates(parts.allowances, parts.clock)
    app.state.seats = stream.Seats(parts.limits.streams_max)
    for router in [operations.router] if operations_only else _ROUTERS:
        app.include_router(router)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]
    problems.install(app)
    _add_middleware(app, parts)
    return app


def _add_middleware(app: FastAPI, parts: ApiParts) -> None:
    """From the inside out: a later one stands around those before it."""
    app.add_middleware(HeadAsGet)
    app.add_middleware(problems.Shield)
    app.add_middleware(TraceContext)
    if parts.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(parts.cors_origins),
            allow_methods=["GET", "HEAD", "POST", "PATCH", "DELETE"],
            allow_headers=_ALLOW_HEADERS,
            expose_headers=_EXPOSE_HEADERS,
            max_age=600,
        )
