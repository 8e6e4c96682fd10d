"""The caller's trace, taken at the door: every log line of the request carries it."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

# W3C Trace Context, version 00 or a later one that keeps its first four fields.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-[!-~]{0,200})?"
)


class TraceContext:
    """Binds `trace_id` and `parent_id` for logging. A `traceparent` that is none is passed over."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        with bound_contextvars(**_trace(scope)):
            await self.app(scope, receive, send)


def traceparent(headers: Headers) -> str | None:
    """The caller's `traceparent`, for a job to carry on to its webhooks; None if it is none."""
    text = headers.get("traceparent", "")
    return text if _TRACEPARENT.fullmatch(text) else None


def _trace(scope: Scope) -> dict[str, str]:
    if scope["type"] != "http":
        return {}
    match = _TRACEPARENT.fullmatch(Headers(scope=scope).get("traceparent", ""))
    return {"trace_id": match[1], "parent_id": match[2]} if match else {}
