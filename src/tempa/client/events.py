"""A job's log as it comes over the wire, and the flow that reads it across broken connections."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.client import calls
from tempa.client.effects import Answer, Emit, Lost, Message, NextMessage, Open, Pause
from tempa.client.errors import unexpected
from tempa.client.exchange import failure, repeat_seconds
from tempa.core.events import TERMINAL_EVENTS
from tempa.core.retry import full_jitter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.client.effects import Call, Flow
    from tempa.client.exchange import Pace
    from tempa.jobs.wire import JobView

PROGRESS = "progress"

_STREAM = "text/event-stream"
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
    last, idle = after, 0
    deadline = pace.monotonic() + patience_seconds
    while (yield from is_open(calls.job_events(job_id, last), pace, deadline)):
        deadline, before = math.inf, last
        while isinstance(message := (yield NextMessage()), Message):
            event = _event(message)
            if event is None or (event.sequence is not None and event.sequence <= last):
                continue
            yield Emit(event)
            last = event.sequence or last
            if event.terminal:
                return
        idle = idle + 1 if last == before else 0
        if idle:  # streams that break before they say anything new
            yield Pause(full_jitter(idle - 1, pace.policy, pace.dice))


def is_open(call: Call, pace: Pace, deadline: float) -> Flow[bool]:
    """Whether there is a stream to read. The server says 204 when the client has seen the last event."""
    for retry in itertools.count():
        reply: Answer | Lost = yield Open(call)
        if isinstance(reply, Answer) and reply.status in (200, 204):
            if reply.status == 200 and not reply.headers.get("content-type", "").startswith(_STREAM):
                raise unexpected(reply)
            return reply.status == 200
        seconds = repeat_seconds(call, reply, retry, pace)
        if seconds is None or pace.monotonic() + seconds > deadline:
            raise failure(reply)
        yield Pause(seconds)
    raise AssertionError("itertools.count() has no end")


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
