"""The roles that look after what was parked, and after what is over."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.testing.clock import ManualClock
from tempa.webhooks.parking import Parking
from tempa.webhooks.retain import DeliveryJanitor
from tests.unit.webhooks.samples import PATIENCE_SECONDS, Tally

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime


class Shelf:
    """A store of so many that are to be healed, expired or pruned; it notes what it was asked."""

    def __init__(self, **left: int) -> None:
        self.left, self.away = left, 0
        self.asked: list[tuple[str, Any]] = []
        self.looks = asyncio.Semaphore(0)

    def _take(self, what: str, argument: Any, limit: int) -> int:
        self.looks.release()
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        self.asked.append((what, argument))
        taken = min(limit, self.left.get(what, 0))
        self.left[what] = self.left.get(what, 0) - taken
        return taken

    async def heal(self, limit: int) -> int:
        return self._take("heal", None, limit)

    async def expire_parked(self, after_seconds: float, limit: int) -> int:
        return self._take("expire", after_seconds, limit)

    async def cancel_stranded(self, limit: int) -> int:
        return self._take("stranded", None, limit)

    async def prune_payloads(self, before: datetime, limit: int) -> int:
        return self._take("payloads", before, limit)

    async def prune_deliveries(self, before: datetime, limit: int) -> int:
        return self._take("deliveries", before, limit)

    async def prune_notices(self, before: datetime, limit: int) -> int:
        return self._take("notices", before, limit)


def parking(shelf: Shelf, meter: Tally, **changes: Any) -> Parking:
    fields: dict[str, Any] = {"every_seconds": 0.0, "rest_seconds": 0.0}
    return Parking(store=shelf, meter=meter, **(fields | changes))  # type: ignore[arg-type]


async def until_looked(shelf: Shelf, run: Callable[[asyncio.Event], Awaitable[None]], looks: int) -> None:
    """Run a role until it has looked so often."""
    stop = asyncio.Event()
    role = asyncio.ensure_future(run(stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(looks):
            await shelf.looks.acquire()
        stop.set()
        await role


async def test_all_is_healed_and_all_that_is_late_expires_in_slices() -> None:
    shelf, meter = Shelf(heal=450, expire=201, stranded=1), Tally()
    role = parking(shelf, meter)

    assert await role.heal(asyncio.Event()) == 450
    assert await role.expire(asyncio.Event()) == 201
    assert await role.cancel_stranded(asyncio.Event()) == 1

    asked = [what for what, _ in shelf.asked]
    assert asked == ["heal"] * 4 + ["expire"] * 3 + ["stranded"] * 2
    assert {argument for what, argument in shelf.asked if what == "expire"} == {72 * 3600}
    assert meter.counted == {"tempa_webhook_healed_total": 450, "tempa_webhook_dead_total": 201}


async def test_a_stop_ends_it_between_two_slices() -> None:
    shelf, stop = Shelf(heal=10_000), asyncio.Event()
    stop.set()

    assert await parking(shelf, Tally()).heal(stop) == 200


async def test_while_the_store_is_away_it_goes_on_looking() -> None:
    shelf = Shelf(heal=3, stranded=2)
    shelf.away = 2

    await until_looked(shelf, parking(shelf, Tally()).run, 6)

    assert (shelf.left["heal"], shelf.left["stranded"]) == (0, 0)


@pytest.mark.parametrize("hours", [1.0, 72.0])
async def test_how_long_is_too_long_is_a_setting(hours: float) -> None:
    shelf = Shelf()
    await parking(shelf, Tally(), parked_hours=hours).expire(asyncio.Event())
    assert shelf.asked == [("expire", hours * 3600)]


async def test_payloads_go_before_records_each_at_its_time() -> None:
    clock, shelf = ManualClock(), Shelf(payloads=201, deliveries=200)
    role = DeliveryJanitor(store=shelf, clock=clock, rest_seconds=0.0)  # type: ignore[arg-type]

    await role.clean(asyncio.Event())

    payload_end, record_end = clock.now() - timedelta(days=30), clock.now() - timedelta(days=90)
    assert shelf.asked == [
        ("payloads", payload_end),
        ("payloads", payload_end),
        ("deliveries", record_end),
        ("deliveries", record_end),
        ("notices", record_end),
    ]


async def test_cleaning_waits_for_a_store_that_is_away() -> None:
    shelf = Shelf(payloads=1)
    shelf.away = 1
    role = DeliveryJanitor(
        store=shelf,  # type: ignore[arg-type]
        clock=ManualClock(),
        every_seconds=0.0,
        rest_seconds=0.0,
    )

    await until_looked(shelf, role.run, 4)

    assert shelf.left["payloads"] == 0
