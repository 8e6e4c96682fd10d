"""The caller's trace (W3C Trace Context), taken at the door: every log line of the request carries it."""

from __future__ import annotations

import re
import secrets
from typing import cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

_KEY = "tempa.traceparent"
# Version 00 has four fields and not one more; a later version keeps these four and may add others.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<parent>(?!0{16})[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[!-~]{0,200})?"
)
_SAMPLED = 1  # the one flag that every version has


class TraceContext:
    """Binds `trace_id` and `parent_id` for logging, where the caller is part of a trace."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        text = _read(scope) if scope["type"] == "http" else None
        if text is None:
            await self.app(scope, receive, send)
            return
        _, trace, parent, _ = text.split("-")
        with bound_contextvars(trace_id=trace, parent_id=parent):
            await self.app({**scope, _KEY: text}, receive, send)


def traceparent(scope: Scope) -> str | None:
    """The request's `traceparent`, for a job to carry on to its webhooks; None if it came without."""
    return cast("str | None", scope.get(_KEY))


def _read(scope: Scope) -> str | None:
    """In the form of version 00, which is the one we speak. One that cannot be read begins a new trace."""
    values = Headers(scope=scope).getlist("traceparent")
    if not values:
        return None
    match = _TRACEPARENT.fullmatch(values[0]) if len(values) == 1 else None
    if match is None or (match["version"] == "00" and match["more"] is not None):
        return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
    flags = int(match["flags"], 16)
    known = flags if match["version"] == "00" else flags & _SAMPLED
    return f"00-{match['trace']}-{match['parent']}-{known:02x}"
