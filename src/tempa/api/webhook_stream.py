"""An account's webhooks as server-sent events, for a receiver that cannot be reached from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from tempa.api.auth import WebhooksKeeper
from tempa.api.events import check_position
from tempa.api.head import is_head
from tempa.api.operation import EVENT_STREAM, Told, header, operation, query
from tempa.api.parts import ApiParts, Parts
from tempa.api.query import Query
from tempa.api.stream import STREAM_HEADERS, EventStream, Seats, last_event_id, sse_event
from tempa.core.errors import Problem
from tempa.core.events import Event
from tempa.core.work import FEED
from tempa.jobs.intake import invalid
from tempa.webhooks.deliver import render, request_headers
from tempa.webhooks.fanout import message
from tempa.webhooks.filters import EVENT_FILTERS, wants

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

_BATCH = 100
_LIST = {"type": "string", "pattern": r"^[a-z0-9_.*]+(,[a-z0-9_.*]+)*$"}


@router.get(
    "/stream",
    **operation(
        "Stream webhooks",
        scope="webhooks",
        answers={200: Told("Each webhook from now on.", media_type=EVENT_STREAM)},
        refusals=["invalid-request", "too-many-requests"],
        parameters=[
            query("events", _LIST, "Which: an endpoint's `events`, comma-separated; default: how jobs end."),
            header("Last-Event-ID", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "Resume after this."),
        ],
    ),
)
async def stream_webhooks(request: Request, parts: Parts, caller: WebhooksKeeper) -> Response:
    """Server-sent events, `event: webhook`: as `data` the `headers` and `body` of what would be sent.

    It is signed just now, with the account's own secret. `id` is the position in the account's feed. Begins
    with `event: ready`, whose id is where the stream starts: after `Last-Event-ID`, else now. A comment
    comes every 15 s when nothing else does. A `Last-Event-ID` that was never given here is refused.
    """
    Query(request, "events").check()
    events = _filters(request.query_params.getlist("events"))
    after = last_event_id(request)
    await check_position(parts, after or 0, "")
    if is_head(request.scope):
        return Response(headers=STREAM_HEADERS, media_type=EVENT_STREAM)
    position = await parts.webhooks.feed_end(caller.account) if after is None else after
    return WebhookStream(parts, cast("Seats", request.app.state.seats), caller.account, events, position)


def _filters(given: Sequence[str]) -> tuple[str, ...] | None:
    names = tuple(name for text in given for name in text.split(","))
    unknown = [name for name in names if name not in EVENT_FILTERS]
    if unknown:
        known = ", ".join(EVENT_FILTERS)
        raise invalid([Problem("/events", f"Not an event: {', '.join(unknown)[:200]}. Known: {known}.")])
    return names or None


class WebhookStream(EventStream):
    """The account's feed, each event that is told outside in the form in which it is sent."""

    def __init__(
        self, parts: ApiParts, seats: Seats, account: str, events: tuple[str, ...] | None, after: int
    ) -> None:
        super().__init__(parts, seats, FEED)
        self._account, self._events, self._after = account, events, after
        self._is_ready = False

    async def _news(self) -> bytes:
        told = bytearray()
        if not self._is_ready:
            told += sse_event("ready", {"position": self._after}, self._after)
            self._is_ready = True
        while found := await self._parts.jobs.feed(self._account, self._after, _BATCH):
            for event in found:
                told += self._told(event)
                self._after = event.position or self._after
            if len(found) < _BATCH or len(told) > self._parts.limits.webhook_body_bytes:
                break
        return bytes(told)

    def _told(self, event: Event) -> bytes:
        sent = message(event)
        if sent is None or not wants(self._events, sent.type, of_job=sent.job_id is not None):
            return b""
        body = render(sent, self._parts.links)
        if len(body) > self._parts.limits.webhook_body_bytes:
            return b""  # it would not be sent either
        secrets = self._parts.endpoints.keyring.of_account(self._account)
        agent = f"Tempa/{self._parts.version}"
        headers = request_headers(sent, body, secrets, self._parts.clock.now(), agent)
        data: dict[str, Any] = {"position": event.position, "headers": dict(headers), "body": body.decode()}
        return sse_event("webhook", data, event.position)
