"""The account's feed: every event of every job, in one order."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Caller, JobsReader
from tempa.api.operation import LIMIT, WAIT, Told, operation, query
from tempa.api.parts import ApiParts, Parts
from tempa.api.presence import POLL_SECONDS, presence
from tempa.api.query import Query
from tempa.core.errors import Problem
from tempa.core.events import Event
from tempa.core.work import FEED, either
from tempa.jobs.intake import invalid
from tempa.jobs.views import event_view
from tempa.jobs.wire import EventView, Page

router = APIRouter(tags=["events"])

_POSITION_MAX = 10**18 - 1
_POSITION = {"type": "integer", "minimum": 0, "maximum": _POSITION_MAX}


class EventPage(Page[EventView]):
    """A page of the feed."""


@router.get(
    "/v1/events",
    **operation(
        "Read the account's feed",
        scope="jobs:read",
        answers={200: Told("The events after a position.", EventPage)},
        refusals=["invalid-request"],
        parameters=[
            query("after", _POSITION, "The position to go on from; default 0, the beginning."),
            query("cursor", _POSITION, "The same, by the name it has in other lists."),
            LIMIT,
            WAIT,
        ],
    ),
)
async def read_feed(request: Request, parts: Parts, caller: JobsReader) -> Response:
    """`next_cursor` is the position of the last event given; null when there was none: keep the one you have.

    Positions grow in the order in which events became visible; they may skip. A reader that keeps
    the last one misses nothing. With `wait`, an empty answer is held until there is an event. A position
    that was never given here is refused: it is another server's, and this one would be mute for long.
    """
    asked = Query(request)
    after, cursor = (asked.whole(name, 0, _POSITION_MAX) for name in ("after", "cursor"))
    limit = asked.limit(parts.limits.page_max)
    seconds = asked.seconds("wait", parts.limits.wait_seconds_max) or 0.0
    asked.check()
    start = max(after or 0, cursor or 0)
    await check_position(parts, start, "/after" if after == start else "/cursor")
    events = await _read(parts, request, caller, start, limit, seconds)
    last = str(events[-1].position) if events else None
    return JSONResponse({"items": [event_view(event) for event in events], "next_cursor": last})


async def check_position(parts: ApiParts, position: int, pointer: str) -> None:
    """Refuse a position beyond all that were given: whoever kept it has it from elsewhere."""
    last = await parts.jobs.last_position() if position else 0
    if position > last:
        detail = (
            f"Position {position} was never given here: the feed has come to {last}. It is of another "
            "server, or of other data. Begin anew at 0."
        )
        raise invalid([Problem(pointer, detail, last)])


async def _read(
    parts: ApiParts, request: Request, caller: Caller, after: int, limit: int, seconds: float
) -> list[Event]:
    """What comes after a position; when that is nothing, what comes within `seconds`."""
    events = await parts.jobs.feed(caller.account, after, limit)
    if events or not seconds:
        return events
    until = parts.clock.monotonic() + seconds
    async with presence(request.receive, parts.stopping) as over:
        with parts.wake.listen(FEED) as bell:
            while True:
                events = await parts.jobs.feed(caller.account, after, limit)
                left = until - parts.clock.monotonic()
                if events or left <= 0 or over.is_set():
                    return events
                await either(bell.wait(min(left, POLL_SECONDS)), over.wait())
