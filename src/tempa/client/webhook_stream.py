"""An account's webhooks as they come over the wire, and the flow that reads on across broken connections."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.client import calls
from tempa.client.effects import Emit, Message, NextMessage, Pause
from tempa.client.events import is_open
from tempa.core.retry import full_jitter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.client.effects import Flow
    from tempa.client.exchange import Pace


@dataclass(frozen=True, slots=True)
class StreamedWebhook:
    """A webhook as it would be sent: POST exactly these bytes, with these headers.

    `position` is its place in the account's feed, to go on from.
    """

    position: int
    headers: Mapping[str, str]
    body: bytes


def follow_webhooks(
    events: Sequence[str], after: int | None, pace: Pace, patience_seconds: float
) -> Flow[None]:
    """Emit the account's webhooks behind position `after` (None: from now on), each once; without end.

    The first contact must come about within `patience_seconds`; after that a connection that breaks is
    waited for as long as it takes, and nothing is missed meanwhile.
    """
    position, idle = after, 0
    deadline = pace.monotonic() + patience_seconds
    while (yield from is_open(calls.webhook_stream(events, position), pace, deadline)):
        deadline, before = math.inf, position
        while isinstance(message := (yield NextMessage()), Message):
            found = _read(message)
            if found is None:
                continue
            position = found.position
            if found.body:
                yield Emit(found)
        idle = idle + 1 if position == before else 0
        if idle:  # streams that break before they say anything new
            yield Pause(full_jitter(idle - 1, pace.policy, pace.dice))


def _read(message: Message) -> StreamedWebhook | None:
    """A webhook; without a body, where the stream starts. What is neither is passed over."""
    try:
        data = json.loads(message.data)
        position = int(data["position"])
        headers = {str(name): str(value) for name, value in data.get("headers", {}).items()}
        return StreamedWebhook(position, headers, str(data.get("body", "")).encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
