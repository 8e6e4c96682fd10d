"""A job's log as it comes over the wire, and the flow that reads it across broken connections."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.client import calls
from tempa.client.effects import Answer, Emit, Lost, Message, NextMessage, Open, Pause
from tempa.client.errors import unexpected
from tempa.client.exchange import exchange, failure, read, repeat_seconds
from tempa.core.events import TERMINAL_EVENTS
from tempa.jobs.wire import JobView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.client.effects import Call, Flow
    from tempa.client.exchange import Pace

PROGRESS = "progress"

_TERMINAL_STATUSES = frozenset(event.removeprefix("job.") for event in TERMINAL_EVENTS)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event of a job's log; or, without a `sequence`, passing news of its progress.

    `body` is the whole event: `sequence`, `type`, `at`, `job_id` and what its type tells besides.
    """

    type: str
    sequence: int | None
    body: Mapping[str, Any]

    @property
    def terminal(self) -> bool:
        """Whether the job has ended: nothing follows."""
        return self.type in TERMINAL_EVENTS


def is_terminal(view: JobView) -> bool:
    """Whether the job has ended."""
    return view.status in _TERMINAL_STATUSES


def follow(job_id: str, after: int, pace: Pace, patience_seconds: float) -> Flow[None]:
    """Emit the job's events behind `after`, each once and in order, to the terminal one.

    The first contact must come about within `patience_seconds`; after that a connection that breaks,
    or a server that restarts, is waited for as long as it takes.
    """
    last = after
    deadline = pace.monotonic() + patience_seconds
    while True:
        yield from _connect(calls.job_events(job_id, last), pace, deadline)
        deadline = math.inf
        before = last
        while isinstance(message := (yield NextMessage()), Message):
            event = _event(message)
            if event is None or (event.sequence is not None and event.sequence <= last):
                continue
            yield Emit(event)
            last = event.sequence or last
            if event.terminal:
                return
        if last == before and (yield from _is_over(job_id, last, pace)):
            return


def _connect(call: Call, pace: Pace, deadline: float) -> Flow[None]:
    retry = 0
    while True:
        reply: Answer | Lost = yield Open(call)
        if isinstance(reply, Answer) and reply.status == 200:
            if not reply.headers.get("content-type", "").startswith("text/event-stream"):
                raise unexpected(reply)
            return
        seconds = repeat_seconds(call, reply, retry, pace)
        if pace.monotonic() + seconds > deadline:
            raise failure(reply)
        yield Pause(seconds)
        retry += 1


def _is_over(job_id: str, last: int, pace: Pace) -> Flow[bool]:
    """A stream that ended with nothing new: was that all, or did somebody cut it?"""
    answer = yield from exchange(calls.job(job_id), pace, math.inf)
    view = read(JobView, answer)
    if is_terminal(view) and view.sequence <= last:
        return True
    yield Pause(pace.policy.base_seconds)
    return False


def _event(message: Message) -> JobEvent | None:
    """What is not an event of ours is passed over: a newer server may say more than we know."""
    try:
        body = json.loads(message.data)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    if message.event == PROGRESS:
        return JobEvent(PROGRESS, None, body)
    sequence = body.get("sequence")
    return JobEvent(message.event, sequence, body) if isinstance(sequence, int) else None
