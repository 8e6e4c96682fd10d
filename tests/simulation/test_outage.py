"""A receiver is down for a day: on a virtual clock, with the real store and the policy in force.

Events come all day long. When the receiver is back it takes so many requests a second and answers the rest
with 503, as one does that is small and has just been started.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import ROOMY, planned
from tempa.testing.contracts.samples import a_new_job, an_outcome
from tempa.webhooks.deliver import follow
from tempa.webhooks.ports import Answer
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.core.clock import Clock
    from tempa.webhooks.model import ClaimedDelivery

_logger = logging.getLogger(__name__)

MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh, private folder in it
URL = "https://hooks.example/"
OUTAGE = timedelta(hours=24)
CHUNKS = 96  # events come every quarter of an hour
LOOK_SECONDS = 0.01  # how late a deliverer may be
HEAL_SECONDS = 5.0
SLICE = 200
DRAINED_MAX = 1.5  # times what the receiver would need at its full rate, all the time
PEAK_MAX = 1.25
REJECTED_MAX = 0.03
PROBES_MAX = 1.2 * OUTAGE.total_seconds() / 30  # full jitter under a ceiling of 60 s: 30 s on average


@dataclass
class SmallReceiver:
    """Down until `up_at`; from then on it takes `per_second` in any second, and no more."""

    clock: Clock
    per_second: int
    up_at: float
    taken: list[str] = field(default_factory=list)
    rejected: int = 0
    while_down: int = 0
    by_second: Counter[int] = field(default_factory=Counter)
    _budget: float = 0.0
    _budget_at: float = 0.0

    def answer(self, claimed: ClaimedDelivery) -> Answer:
        now = self.clock.monotonic()
        if now < self.up_at:
            self.while_down += 1
            return Answer(503, None)
        self.by_second[int(now)] += 1
        self._budget = min(self._budget + (now - self._budget_at) * self.per_second, self.per_second / 5)
        self._budget_at = now
        if self._budget < 1:
            self.rejected += 1
            return Answer(503, None)
        self._budget -= 1
        self.taken.append(claimed.id)
        return Answer(200, None)


class Day:
    """A store, and what its deliverer, its fan-out and its parking would do in it."""

    def __init__(self, store: SqliteStore, clock: ManualClock, receiver: SmallReceiver, events: int) -> None:
        self.store, self.clock, self.receiver = store, clock, receiver
        self.events, self.dice = events, random.Random(7)
        self.announced, self.healed, self.healed_at = 0, 0, 0.0

    async def announce(self, count: int) -> None:
        """Events of new jobs, all at once."""
        await asyncio.gather(*(self.store.admit(a_new_job(self.clock)) for _ in range(count)))
        while events := await self.store.unplanned(256):
            told = [event for event in events if event.job_id is not None]
            plans = [planned(event, *([URL] if event.job_id else [])) for event in events]
            assert await self.store.fan_out(plans) == len(told)
        self.announced += count

    async def deliver(self, until: float) -> None:
        """All that is due until then, each attempt answered at once."""
        while self.clock.monotonic() < until:
            claim = await self.store.claim_deliveries(Room(ROOMY), 64, 30.0)
            for claimed in claim.taken:
                await self._settle(claimed)
            await self._heal()
            if not claim.taken:
                left = until - self.clock.monotonic()
                wait = HEAL_SECONDS if claim.next_seconds is None else claim.next_seconds
                self.clock.advance(min(max(wait, LOOK_SECONDS), HEAL_SECONDS, max(left, LOOK_SECONDS)))
            if len(self.receiver.taken) == self.events:
                return

    async def _settle(self, claimed: ClaimedDelivery) -> None:
        answer = self.receiver.answer(claimed)
        then = follow(answer, claimed.retries_spent, RetryPolicy(), self.clock.now(), self.dice)
        outcome = an_outcome(str(then.status), http_status=answer.status)
        assert await self.store.settle_delivery(claimed, outcome, then)

    async def _heal(self) -> None:
        if self.clock.monotonic() - self.healed_at >= HEAL_SECONDS:
            self.healed_at = self.clock.monotonic()
            while healed := await self.store.heal(SLICE):
                self.healed += healed
            assert await self.store.expire_parked(72 * 3600.0, SLICE) == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tempa-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("events", "per_second", "heals"),
    [(3_000, 40, True), pytest.param(100_000, 200, False, marks=pytest.mark.chaos)],
)
async def test_a_day_without_its_receiver_loses_nothing_and_ends_soon(
    folder: Path, events: int, per_second: int, *, heals: bool
) -> None:
    clock = ManualClock()
    start = clock.monotonic()
    up_at = start + OUTAGE.total_seconds()
    receiver = SmallReceiver(clock, per_second, up_at)
    store = await SqliteStore.open(folder / "tempa.db", clock=clock, wake=InProcessWake(clock))
    day = Day(store, clock, receiver, events)
    for chunk in range(CHUNKS):
        await day.announce(events * (chunk + 1) // CHUNKS - day.announced)
        await day.deliver(start + (chunk + 1) * OUTAGE.total_seconds() / CHUNKS)
    ideal = events / per_second
    await day.deliver(up_at + 3 * ideal)
    drained = clock.monotonic() - up_at
    counts = await store.delivery_counts()
    await store.close()

    figures = {
        "drained_of_ideal": drained / ideal,
        "peak_of_capacity": max(receiver.by_second.values()) / per_second,
        "rejected_share": receiver.rejected / events,
        "requests_while_down": receiver.while_down,
        "healed": day.healed,
    }
    _logger.info("a day's outage, %d events: %s", events, figures)  # shown by --log-cli-level=info
    assert counts == {}
    assert len(receiver.taken) == len(set(receiver.taken)) == events
    assert figures["drained_of_ideal"] <= DRAINED_MAX
    assert figures["peak_of_capacity"] <= PEAK_MAX
    assert figures["rejected_share"] <= REJECTED_MAX
    assert receiver.while_down <= PROBES_MAX
    # Probes spend attempts. Where few wait, each is asked often: some die of it, and are sent all the same.
    assert (day.healed > 0) is heals
