"""Deliveries go when they are due, not when somebody happens to look: time passes by hand here."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import ACCOUNT, EXHAUSTED, LEASE_SECONDS, an_outcome, pending
from tempa.webhooks.model import DeadFilter
from tempa.webhooks.ports import Answer
from tempa.webhooks.room import Room
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeSender

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.webhooks.model import ClaimedDelivery, DeliveryClaim
    from tempa.webhooks.ports import Outbound

OK = Answer(200, None)
COUNT = 12


class Diary(FakeSender):
    """Notes when each request was sent."""

    def __init__(self, answer: Answer, clock: ManualClock) -> None:
        super().__init__(answer)
        self.clock = clock
        self.times: list[datetime] = []

    async def send(self, request: Outbound) -> Answer:
        self.times.append(self.clock.now())
        return await super().send(request)


def urls(count: int = COUNT) -> list[str]:
    return [f"https://h{number}.example/" for number in range(count)]


async def taken(post: Any) -> tuple[ClaimedDelivery, ...]:
    """A delivery to each URL, in its first attempt."""
    await post.announce(*urls())
    claim: DeliveryClaim = await post.store.claim_deliveries(Room(100), COUNT, LEASE_SECONDS)
    assert len(claim.taken) == COUNT
    return claim.taken


async def step_through(clock: ManualClock, sender: FakeSender, gaps: list[float]) -> None:
    """Let time pass from one due time to the next; at each, one request must come.

    The gate is closed, so that no attempt ends: else an outcome that is just being written would
    make the deliverer reckon its sleep while time jumps.
    """
    for gap in gaps:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await clock.until_asleep()
        clock.advance(gap)
        await sender.under_way(1)
    sender.gate.set()


async def test_every_retry_goes_at_the_very_time_that_was_chosen(open_post: Any) -> None:
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(OK, clock)
    delays = [0.001, 0.013, 0.4, 0.401, 0.77, 0.999, 1.0, 1.001, 1.6, 3.7, 3.702, 3.9]
    start = clock.now()
    for claimed, delay in zip(reversed(await taken(post)), delays, strict=True):
        await post.store.settle_delivery(claimed, an_outcome(), pending(delay_seconds=delay))
    sender.gate.clear()
    async with post.delivering(sender):
        await step_through(clock, sender, [after - before for before, after in pairwise([0.0, *delays])])

    assert sender.times == [start + timedelta(seconds=delay) for delay in delays]


async def test_a_redrive_goes_evenly_and_in_no_bursts(open_post: Any) -> None:
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(OK, clock)
    letters = await taken(post)
    for claimed in letters:
        await post.store.settle_delivery(claimed, an_outcome(), EXHAUSTED)
    which = DeadFilter(delivery_ids=tuple(claimed.id for claimed in letters))
    assert await post.store.redrive(ACCOUNT, which, 0.04) == COUNT
    sender.gate.clear()
    async with post.delivering(sender):
        await sender.under_way(1)
        await step_through(clock, sender, [0.04] * (COUNT - 1))

    gaps = [(after - before).total_seconds() for before, after in pairwise(sender.times)]
    assert gaps == [0.04] * (COUNT - 1)


async def test_in_the_narrowest_room_nobody_waits_for_time_to_pass(open_post: Any) -> None:
    """Each end lets the next one in, at once: a wake-up that is lost would be seen, as time stands still."""
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(OK, clock)
    for slots in (1, 2, 5):
        async with post.delivering(sender, in_flight_max=slots):
            await post.announce(*urls(40), *(f"https://h0.example/{number}" for number in range(20)))
            await sender.under_way(60)

        assert clock.monotonic() == 0
        assert sender.most <= slots
