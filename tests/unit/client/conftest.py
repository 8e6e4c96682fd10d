"""A world for flows: it answers what they ask for from a list, and time passes only when they pause."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tempa.client.effects import Answer, Emit, Lost, Message, NextMessage, Open, Pause, Save, Send
from tempa.client.exchange import Pace

if TYPE_CHECKING:
    from tempa.client.effects import Call, Effect, Flow

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class HalfDice:
    """Half of every ceiling: waits are 0.25, 0.5, 1, 2, 4, 7.5, 7.5, ... seconds."""

    def random(self) -> float:
        return 0.5


@dataclass(frozen=True)
class After:
    """A reply that takes its time."""

    seconds: float
    reply: Answer | Lost | Message | None


@dataclass
class World:
    """Runs flows. `calls` are those they made, `pauses` the seconds they waited between them."""

    seconds: float = 0.0
    calls: list[Call] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)

    @property
    def pace(self) -> Pace:
        return Pace(
            dice=HalfDice(),
            monotonic=lambda: self.seconds,
            now=lambda: EPOCH + timedelta(seconds=self.seconds),
        )

    @staticmethod
    def after(seconds: float, reply: Answer | Lost | Message | None) -> After:
        return After(seconds, reply)

    def run(self, flow: Flow[T], *replies: Answer | Lost | Message | After | None) -> T:
        """What the flow returns. It must ask for exactly as many replies as there are."""
        left = list(replies)
        reply: Answer | Lost | Message | None = None
        try:
            while True:
                reply = self._perform(flow.send(reply), left)
        except StopIteration as end:
            assert not left, f"nobody asked for {left}"
            result: T = end.value
            return result

    def _perform(self, effect: Effect, left: list[Any]) -> Answer | Lost | Message | None:
        match effect:
            case Pause(seconds):
                self.seconds += seconds
                self.pauses.append(seconds)
                return None
            case Emit(value):
                self.emitted.append(value)
                return None
            case Send(call) | Open(call) | Save(call):
                self.calls.append(call)
            case NextMessage():
                pass
        assert left, f"no reply is left for {effect}"
        reply = left.pop(0)
        if isinstance(reply, After):
            self.seconds += reply.seconds
            reply = reply.reply
        if isinstance(effect, Save) and isinstance(reply, Answer) and reply.status == 200:
            effect.sink.write(reply.body)
        assert reply is None or isinstance(reply, Answer | Lost | Message)
        return reply


@pytest.fixture
def world() -> World:
    return World()
