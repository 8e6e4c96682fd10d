"""What both drivers share of HTTP: requests, answers and losses in httpx2's terms. No waiting here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from tempa import __version__
from tempa.client.effects import Answer, Lost, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.client.discovery import Server
    from tempa.client.effects import Call

_CONNECT_SECONDS = 5.0
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def session_options(server: Server) -> dict[str, Any]:
    """How to set up an httpx2 client. A proxy of the environment is not asked for the local server."""
    return {
        "headers": {"User-Agent": f"tempa-python/{__version__}"},
        "trust_env": urlsplit(server.url).hostname not in _LOOPBACK,
    }


def request_options(call: Call, server: Server) -> dict[str, Any]:
    """Arguments of httpx2's `stream`, less the body. Only calls below the server's URL carry its key."""
    linked = call.path.startswith(("http://", "https://"))
    headers = dict(call.headers)
    if server.api_key and not linked:
        headers["Authorization"] = f"Bearer {server.api_key}"
    return {
        "method": call.method,
        "url": call.path if linked else server.url + call.path,
        "params": dict(call.query) or None,
        "headers": headers,
        "timeout": httpx2.Timeout(call.silence_seconds, connect=_CONNECT_SECONDS),
        "follow_redirects": linked,
    }


def answer_of(response: httpx2.Response, body: bytes = b"") -> Answer:
    """The answer as plain values."""
    return Answer(response.status_code, _lowered(response.headers), body)


def message_of(event: httpx2.ServerSentEvent) -> Message:
    """A server-sent event as plain values."""
    return Message(event.event, event.data)


def lost_of(error: httpx2.TransportError, server: Server) -> Lost:
    """Why there is no answer, in words for people."""
    sent = not isinstance(error, _NEVER_SENT)
    return Lost(_words(error, server, sent=sent), sent)


def _words(error: httpx2.TransportError, server: Server, *, sent: bool) -> str:
    where = urlsplit(server.url).netloc
    if not sent:
        hint = " Is it running? Start it with `tempa up`." if server.origin == "ready file" else ""
        return f"No connection to {where}: {str(error) or 'it takes too long'}.{hint}"
    if isinstance(error, httpx2.TimeoutException):
        return f"{where} took the request and gave no answer in time."
    return f"The connection to {where} broke: {str(error) or type(error).__name__}."


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
