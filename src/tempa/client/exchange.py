"""One call, repeated as long as that is safe and may help; the rules as pure functions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from secrets import SystemRandom
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from tempa.client.effects import Answer, Lost, Pause, Send
from tempa.client.errors import not_reachable, problem_of, unexpected
from tempa.core.clock import SystemClock
from tempa.core.retry import RetryPolicy, full_jitter

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tempa.client.effects import Call, Flow
    from tempa.client.errors import TempaProblem
    from tempa.core.retry import Dice

Model = TypeVar("Model", bound=BaseModel)

# Refused for now, or lost between a proxy and the server. 500 is a fault that repeats itself.
_PASSING = frozenset({429, 502, 503, 504})
_NOT_ACTED_ON = frozenset({429, 503})


_POLICY = RetryPolicy(base_seconds=0.5, cap_seconds=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The client's clocks and dice, and how it spaces repeats."""

    policy: RetryPolicy = _POLICY
    dice: Dice = field(default_factory=SystemRandom)
    monotonic: Callable[[], float] = SystemClock().monotonic
    now: Callable[[], datetime] = SystemClock().now


def exchange(call: Call, pace: Pace, deadline: float) -> Flow[Answer]:
    """Make `call`, again if need be, until `deadline` (by `pace.monotonic`).

    Returns an answer of 2xx or 304. Raises TempaProblem, NotReachable if the last try found nobody.
    """
    for retry in itertools.count():
        reply = yield Send(call)
        if isinstance(reply, Answer) and is_success(reply):
            return reply
        seconds = repeat_seconds(call, reply, retry, pace)
        if seconds is None or pace.monotonic() + seconds > deadline:
            raise failure(reply)
        yield Pause(seconds)
    raise AssertionError("itertools.count() has no end")


def read(model: type[Model], answer: Answer) -> Model:
    """The answer's body as what Tempa says there. Raises TempaProblem if it is something else."""
    try:
        return model.model_validate_json(answer.body)
    except ValidationError:
        raise unexpected(answer) from None


def is_success(answer: Answer) -> bool:
    """2xx, and 304: what was asked for is already here."""
    return 200 <= answer.status < 300 or answer.status == 304


def failure(reply: Answer | Lost) -> TempaProblem:
    """The error that tells of this reply."""
    return not_reachable(reply) if isinstance(reply, Lost) else problem_of(reply)


def repeat_seconds(call: Call, reply: Answer | Lost, retry: int, pace: Pace) -> float | None:
    """How long to wait before repeating the call; None if it must not be repeated."""
    if not _may_repeat(call, reply):
        return None
    asked = 0.0 if isinstance(reply, Lost) else retry_after_seconds(reply, pace.now())
    return asked + full_jitter(retry, pace.policy, pace.dice)


def retry_after_seconds(answer: Answer, now: datetime) -> float:
    """What `Retry-After` asks for, in seconds or as a date (RFC 9110 section 10.2.3); 0 without one."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
    except (TypeError, ValueError):  # unreadable, or without a zone
        return 0.0


def _may_repeat(call: Call, reply: Answer | Lost) -> bool:
    if isinstance(reply, Lost):
        return call.repeatable or not reply.sent
    if reply.status == 409:
        return problem_of(reply).slug == "request-in-progress"
    return reply.status in (_PASSING if call.repeatable else _NOT_ACTED_ON)
