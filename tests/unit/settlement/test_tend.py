"""Rentals and nonces are tended in slices, at once and again, whatever the store does."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.errors import StoreUnavailable
from tempa.settlement.rentals import Expired
from tempa.settlement.tend import Tender
from tempa.testing.clock import START, ManualClock

if TYPE_CHECKING:
    from datetime import datetime

PATIENCE_SECONDS = 10.0


@dataclass
class Books:
    """Rentals that are due and old nonces, as many as are left; and what was asked."""

    due: Counter[str] = field(default_factory=Counter)
    nonces: int = 0
    is_away: bool = False
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def expire_rentals(self, warn_seconds: float, grace_seconds: float, limit: int) -> Expired:
        self.asked.append(("rentals", warn_seconds, grace_seconds))
        self.looked.set()
        if self.is_away:
            raise StoreUnavailable("away")
        taken = {step: min(count, limit) for step, count in self.due.items()}
        self.due.subtract(taken)
        return Expired(**taken)

    async def forget_nonces(self, before: datetime, limit: int) -> int:
        self.asked.append(("nonces", before))
        taken = min(self.nonces, limit)
        self.nonces -= taken
        return taken


class Sums:
    """A meter that sums."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        assert name == "tempa_settlement_expiries_total"
        self.counts[labels["step"]] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        raise AssertionError(name)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        raise AssertionError(name)


def tender(books: Books, **options: Any) -> Tender:
    parts: dict[str, Any] = {"store": books, "clock": ManualClock(), "meter": Sums(), "rest_seconds": 0.0}
    return Tender(**{**parts, "warn_seconds": 600.0, "grace_seconds": 300.0, **options})


async def test_rentals_are_tended_until_none_of_any_step_is_left() -> None:
    books = Books(due=Counter(warned=3, in_grace=450, ended=1_000))
    meter = Sums()

    await tender(books, meter=meter).expire_rentals(asyncio.Event())

    assert books.due.total() == 0
    assert meter.counts == {"warned": 3, "in_grace": 450, "ended": 1_000}
    assert set(books.asked) == {("rentals", 600.0, 300.0)}


async def test_nonces_are_kept_for_twice_their_window() -> None:
    """A call may be dated 300 s ahead, so it is good for 600 s from when it first came."""
    books = Books(nonces=500)

    await tender(books).forget_nonces(asyncio.Event())

    assert books.nonces == 0
    assert set(books.asked) == {("nonces", START - timedelta(seconds=600))}


async def test_it_stops_between_two_slices() -> None:
    books = Books(due=Counter(ended=1_000))
    stop = asyncio.Event()
    stop.set()

    await tender(books).expire_rentals(stop)

    assert books.due.total() == 800


async def test_a_store_that_is_away_is_asked_again_and_nonces_do_not_wait_for_rentals() -> None:
    books = Books(due=Counter(ended=5), nonces=5, is_away=True)
    stop = asyncio.Event()
    running = asyncio.create_task(tender(books, every_seconds=0.01, nonces_seconds=0.01).run(stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(3):
            await books.looked.wait()
            books.looked.clear()
        assert books.nonces == 0
        books.is_away = False
        while books.due.total():
            await books.looked.wait()
            books.looked.clear()
        stop.set()
        await running
