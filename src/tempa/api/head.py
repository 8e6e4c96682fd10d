"""HEAD works where GET does (RFC 9110, section 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

_KEY = "tempa.head"


class HeadAsGet:
    """Routes a HEAD as a GET. The server that called us leaves the body out, as it knows the method."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", _KEY: True}
        await self.app(scope, receive, send)


def is_head(scope: Scope) -> bool:
    """Whether only the headers are wanted: for answers that would stream or read a file for nothing."""
    return _KEY in scope
