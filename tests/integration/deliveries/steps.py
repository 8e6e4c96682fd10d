"""Senders that answer by a script or note the time, and deliveries for an endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.testing.contracts.endpoints import plan_to
from tempa.webhooks.ports import Answer
from tests.unit.webhooks.samples import FakeSender

if TYPE_CHECKING:
    from tempa.testing.clock import ManualClock
    from tempa.webhooks.model import Endpoint
    from tempa.webhooks.ports import Outbound


class Script(FakeSender):
    """Answers one after the other, as listed; the last one stays."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(Answer(statuses[-1], None))
        self.statuses = list(statuses)

    async def send(self, request: Outbound) -> Answer:
        answer = await super().send(request)
        return Answer(self.statuses.pop(0), None) if self.statuses else answer


class Diary(FakeSender):
    """Notes when each request was sent, by a clock that nobody sets."""

    def __init__(self, answer: Answer, clock: ManualClock) -> None:
        super().__init__(answer)
        self.clock = clock
        self.times: list[float] = []

    async def send(self, request: Outbound) -> Answer:
        self.times.append(self.clock.monotonic())
        return await super().send(request)


async def backlog(post: Any, endpoint: Endpoint, count: int) -> None:
    """So many deliveries to the endpoint, each of a job of its own."""
    for _ in range(count):
        await post.bench.admit()
    while events := await post.store.unplanned(1000):
        assert await plan_to(post.bench, endpoint) == len(events)
