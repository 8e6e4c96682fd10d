"""What is past its retention goes while deliveries flow: these neither wait for that nor go with it."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import TYPE_CHECKING, Any

from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.endpoints import register
from tempa.testing.contracts.samples import DAY_SECONDS, DELIVERED, LEASE_SECONDS, an_outcome
from tempa.webhooks import retain
from tempa.webhooks.model import DeliveryStatus
from tempa.webhooks.ports import Answer
from tempa.webhooks.retain import DeliveryJanitor
from tempa.webhooks.room import Room
from tests.integration.deliveries.steps import Script, backlog
from tests.unit.webhooks.samples import FakeSender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    import pytest

AMPLE = 1_000_000  # slots
OLD, NEW = 200, 30
SLICE = 20


async def old_ones(post: Any, number_of: int) -> None:
    """Deliveries that came to their end a hundred days ago."""
    await post.announce(*(f"https://old{number}.example/" for number in range(number_of)))
    while taken := (await post.store.claim_deliveries(Room(AMPLE), 500, LEASE_SECONDS)).taken:
        outcome = an_outcome("delivered", 200)
        settled = (post.store.settle_delivery(claimed, outcome, DELIVERED) for claimed in taken)
        assert all(await asyncio.gather(*settled))
    post.clock.advance(100 * DAY_SECONDS)


class Halting:
    """A store whose slices of retention are each followed by `then`, before the next one."""

    def __init__(self, store: Any, then: Callable[[], Awaitable[None]]) -> None:
        self._store, self._then = store, then
        self.slices = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def prune_deliveries(self, before: datetime, limit: int) -> int:
        count: int = await self._store.prune_deliveries(before, limit)
        self.slices += 1
        await self._then()
        return count


async def test_what_flows_neither_waits_for_a_purge_nor_goes_with_it(
    open_any: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Svix issues 1933 and 869: deletes that hang, and hang others. Some while it runs, one in each pause."""
    monkeypatch.setattr(retain, "_SLICE", SLICE)
    post, sender = await open_any(ManualClock()), FakeSender(Answer(200, None))
    await old_ones(post, OLD)
    numbers = count()

    async def one_more() -> None:
        await post.announce(f"https://new{next(numbers)}.example/")
        await sender.under_way(1)

    store: Any = Halting(post.store, one_more)
    janitor = DeliveryJanitor(store=store, clock=post.clock, rest_seconds=0.0)
    async with post.delivering(sender):
        await janitor.clean(asyncio.Event())
        await post.until_over(store.slices)

    assert store.slices == OLD // SLICE + 1
    left = await post.deliveries()
    assert [one.status for one in left] == [DeliveryStatus.DELIVERED] * store.slices
    assert all(not one.is_spent and one.attempts == 1 for one in left)


async def test_a_purge_and_deliveries_at_once_stand_in_nobodys_way(open_any: Any) -> None:
    post, sender = await open_any(ManualClock()), FakeSender(Answer(200, None))
    await old_ones(post, OLD)
    janitor = DeliveryJanitor(store=post.store, clock=post.clock, rest_seconds=0.0)
    async with post.delivering(sender):
        purge = asyncio.create_task(janitor.clean(asyncio.Event()))
        for number in range(NEW):
            await post.announce(f"https://new{number}.example/")
        await purge
        await post.until_over(NEW)

    assert [one.status for one in await post.deliveries()] == [DeliveryStatus.DELIVERED] * NEW
    assert len(sender.sent) == NEW


async def test_what_still_waits_is_never_pruned_however_old_it_is(open_any: Any) -> None:
    post, sender = await open_any(ManualClock()), Script(503, 200)
    endpoint = await register(post.bench)
    await post.store.pause_endpoint(endpoint.account, endpoint.id)
    await backlog(post, endpoint, 3)
    post.clock.advance(200 * DAY_SECONDS)
    janitor = DeliveryJanitor(store=post.store, clock=post.clock, rest_seconds=0.0)
    await janitor.clean(asyncio.Event())
    assert await post.store.delivery_counts() == {"parked": 3}

    assert await post.store.resume_endpoint(endpoint.account, endpoint.id)
    async with post.delivering(sender, policy=RetryPolicy(), rng=random.Random(7)):
        await post.pass_time(0.05, lambda: len(sender.sent) >= 4)
        await post.until_over(3)

    assert {one.status for one in await post.deliveries()} == {DeliveryStatus.DELIVERED}
