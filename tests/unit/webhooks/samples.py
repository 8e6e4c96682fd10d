"""Stand-ins for what the slice asks of the world, and small values for the tests of this room."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tempa.core.errors import StoreUnavailable
from tempa.core.metrics import METRICS
from tempa.webhooks.model import ClaimedDelivery, DeliveryClaim, Message
from tempa.webhooks.ports import Answer, Settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.events import Event
    from tempa.webhooks.breaker import Change
    from tempa.webhooks.model import AttemptOutcome, Next, Planned, Subscription
    from tempa.webhooks.ports import Outbound
    from tempa.webhooks.room import Room

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PATIENCE_SECONDS = 10.0  # for what comes at once, unless it never comes


class FakeStore:
    """Hands out what lies in `due` and `events`, notes what is written.

    `away`: how many calls still fail. `refuses`: whose outcomes cannot be written at all.
    """

    def __init__(self) -> None:
        self.due: list[ClaimedDelivery] = []
        self.events: list[Event] = []
        self.registered: list[Subscription] = []
        self.looked_up: list[Sequence[str]] = []
        self.away = 0
        self.next_seconds: float | None = None
        self.limits: list[int] = []
        self.rooms: list[Room] = []
        self.refuses: set[str] = set()
        self.change: Change | None = None
        self.settled: list[tuple[ClaimedDelivery, AttemptOutcome, Next]] = []
        self.batches: list[list[Planned]] = []
        self.freed = 0
        self.changed = asyncio.Condition()

    async def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")

    async def _note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def wait_for(self, condition: Any) -> None:
        """Until `condition()` holds; TimeoutError if it never does."""
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            await self.changed.wait_for(condition)

    async def claim_deliveries(self, room: Room, limit: int, _lease_seconds: float) -> DeliveryClaim:
        assert 0 < limit <= room.free
        await self._answer()
        self.limits.append(limit)
        self.rooms.append(room)
        taken, self.due = tuple(self.due[:limit]), self.due[limit:]
        await self._note()
        return DeliveryClaim(taken, self.next_seconds)

    async def settle_delivery(self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> Settled:
        await self._answer()
        if claimed.id in self.refuses:
            raise ValueError("a slip of the store")
        self.settled.append((claimed, outcome, then))
        await self._note()
        return Settled(self.change)

    async def free_expired_deliveries(self) -> int:
        await self._answer()
        self.freed += 1
        await self._note()
        return 0

    async def unplanned(self, limit: int) -> list[Event]:
        await self._answer()
        return self.events[:limit]

    async def subscriptions(self, accounts: Sequence[str]) -> list[Subscription]:
        self.looked_up.append(accounts)
        return [each for each in self.registered if each.account in accounts]

    async def fan_out(self, planned: Sequence[Planned]) -> int:
        self.batches.append(list(planned))
        self.events = self.events[len(planned) :]
        await self._note()
        return sum(len(plan.deliveries) for plan in planned)


class FakeSender:
    """Answers with `answer`, or raises it; while `gate` is closed, requests wait at it."""

    def __init__(self, answer: Answer | Exception) -> None:
        self.answer = answer
        self.gate = asyncio.Event()
        self.gate.set()
        self.sent: list[Outbound] = []
        self.now = self.most = 0  # requests on their way
        self.waiting = asyncio.Semaphore(0)

    async def send(self, request: Outbound) -> Answer:
        self.sent.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        self.waiting.release()
        await self.gate.wait()
        self.now -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def under_way(self, count: int) -> None:
        """Until `count` more requests have come."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(count):
                await self.waiting.acquire()

    async def close(self) -> None: ...


class NoLinks:
    """Links that nobody follows."""

    def artifact(self, job_id: str, name: str) -> tuple[str, datetime]:
        return f"https://here/{job_id}/{name}", NOW


class Tally:
    """A meter that counts, and knows the table."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        assert labels.keys() == set(METRICS[name].labels)
        self.counted[name] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


def a_claim(number: int = 1, **changes: Any) -> ClaimedDelivery:
    """A delivery in its first attempt."""
    message = Message(
        id=f"evt_{number}",
        account="default",
        job_id="cad_1",
        type="cad_generation.failed",
        at=NOW,
        data={"job_id": "cad_1", "tags": {}},
    )
    fields: dict[str, Any] = {
        "id": f"dlv_{number}",
        "attempt": 1,
        "retries_spent": 0,
        "url": "https://hooks.example/",
        "message": message,
    }
    return ClaimedDelivery(**(fields | changes))
