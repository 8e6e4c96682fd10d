"""A job's events as they happen: server-sent events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from tempa.api.artifacts import has_live_preview
from tempa.api.auth import JobReader
from tempa.api.body import one_header
from tempa.api.head import is_head
from tempa.api.jobs import kept_job
from tempa.api.operation import EVENT_STREAM, JobId, Told, header, operation
from tempa.api.parts import ApiParts, Parts
from tempa.api.presence import POLL_SECONDS, presence
from tempa.core.errors import Problem, Refusal, StoreUnavailable
from tempa.core.events import TERMINAL_EVENTS
from tempa.core.work import Bell, either, job_topic
from tempa.jobs.intake import invalid
from tempa.jobs.model import Job, Status
from tempa.jobs.views import job_view, log_view

router = APIRouter(prefix="/v1/jobs", tags=["events"])

KEEP_ALIVE_SECONDS = 15.0  # proxies cut connections that are silent for 30 to 60 s
_BATCH = 100
_SEQUENCE = re.compile(r"[0-9]{1,18}")
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would hold events back


@dataclass(slots=True)
class Seats:
    """How many streams may be open at once in this process."""

    free: int

    @contextmanager
    def taken(self) -> Iterator[None]:
        """One of them. Raises `Refusal`: `too-many-requests`."""
        if self.free <= 0:
            detail = "Too many streams are open here. Poll with ?wait= meanwhile."
            raise Refusal("too-many-requests", detail, headers={"Retry-After": "5"})
        self.free -= 1
        try:
            yield
        finally:
            self.free += 1


@router.get(
    "/{job_id}/events",
    **operation(
        "Watch a job",
        scope="jobs:read",
        answers={
            200: Told("The job's events so far, then each new one.", media_type=EVENT_STREAM),
            204: Told("The job has ended and the client has seen its last event: do not reconnect."),
        },
        refusals=["not-found", "gone", "invalid-request", "too-many-requests"],
        parameters=[
            header("Last-Event-ID", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "Resume after this.")
        ],
        token=True,
    ),
)
async def watch_job(job_id: JobId, request: Request, parts: Parts, caller: JobReader) -> Response:
    """Server-sent events: `event` is the type, `id` the sequence, `data` the event as JSON.

    Ends after the terminal event. `event: progress`, without an id, tells stages and fractions in
    between; it is not replayed. A comment comes every 15 s when nothing else does.
    """
    after = last_event_id(request) or 0
    job = await kept_job(parts, caller, job_id)
    if job.status.terminal and after >= job.sequence:
        return Response(status_code=204)  # an EventSource reconnects after all but this
    if is_head(request.scope):
        return Response(headers=STREAM_HEADERS, media_type=EVENT_STREAM)
    return JobStream(parts, cast("Seats", request.app.state.seats), job, after)


def last_event_id(request: Request) -> int | None:
    """Which event the client has seen last; None: it does not say."""
    given = one_header(request, "last-event-id")
    if given is None:
        return None
    text = given.strip()
    if _SEQUENCE.fullmatch(text) is None:
        raise invalid([Problem("", "The header Last-Event-ID must be the number of an event.")])
    return int(text)


class EventStream(Response):
    """The answer that goes on. It sends by itself: a generator would be closed late, by the collector."""

    media_type = EVENT_STREAM

    def __init__(self, parts: ApiParts, seats: Seats, topic: str) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(STREAM_HEADERS)
        self._parts, self._seats, self._topic = parts, seats, topic
        self._ended = False

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send until there is nothing more to tell, the client has gone or the server stops."""
        with self._seats.taken(), self._parts.wake.listen(self._topic) as bell:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with presence(receive, self._parts.stopping) as over:
                await self._tell(send, bell, over)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send, bell: Bell, over: asyncio.Event) -> None:
        clock = self._parts.clock
        quiet_since = clock.monotonic()
        while not over.is_set():
            news = await self._news_if_any()
            if not news and clock.monotonic() - quiet_since >= KEEP_ALIVE_SECONDS:
                news = b": keep-alive\n\n"
            if news:
                await send({"type": "http.response.body", "body": news, "more_body": True})
                quiet_since = clock.monotonic()
            if self._ended:
                return
            await either(bell.wait(POLL_SECONDS), over.wait())

    async def _news_if_any(self) -> bytes:
        """While the store is away the stream stays open and is silent."""
        try:
            return await self._news()
        except StoreUnavailable:
            return b""

    async def _news(self) -> bytes:
        """What has happened since, as events. `_ended` is set with the last."""
        raise NotImplementedError


class JobStream(EventStream):
    """A job's log, to its end."""

    def __init__(self, parts: ApiParts, seats: Seats, job: Job, after: int) -> None:
        super().__init__(parts, seats, job_topic(job.id))
        self._job, self._after = job, after
        self._progress: tuple[str | None, float | None] = (None, None)

    async def _news(self) -> bytes:
        self._job = await self._parts.jobs.job(self._job.account, self._job.id) or self._job
        events = await self._new_events()
        return events if self._ended else events + await self._new_progress()

    async def _new_events(self) -> bytes:
        told = bytearray()
        while self._after < self._job.sequence and not self._ended:
            events = await self._parts.jobs.job_events(self._job.id, self._after, _BATCH)
            for event in events:
                told += sse_event(event.type, log_view(event), event.sequence)
                self._after = event.sequence or self._after
                self._ended = event.type in TERMINAL_EVENTS
            if not events:
                break
        # Also for a client that says it has seen more events than there are.
        self._ended = self._ended or (self._job.status.terminal and self._after >= self._job.sequence)
        return bytes(told)

    async def _new_progress(self) -> bytes:
        progress = (self._job.stage, self._job.fraction)
        if self._job.status is not Status.PROCESSING or progress == self._progress:
            return b""
        self._progress = progress
        has_preview = await has_live_preview(self._parts, self._job)
        view = job_view(self._job, self._parts.links, has_preview=has_preview)["progress"]
        return sse_event("progress", {"job_id": self._job.id, **view})


def sse_event(name: str, data: Mapping[str, Any], sequence: int | None = None) -> bytes:
    """One event. JSON is one line: it has no line breaks but escaped ones."""
    number = "" if sequence is None else f"id: {sequence}\n"
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"event: {name}\n{number}data: {text}\n\n".encode()
