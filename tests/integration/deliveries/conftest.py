"""A deliverer at work on a real store."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.core.work import DELIVERIES
from tempa.testing.contracts.bench import StoreBench, planned
from tempa.testing.contracts.samples import ACCOUNT, a_new_job
from tempa.webhooks.deliver import Deliverer
from tests.unit.webhooks.samples import PATIENCE_SECONDS, NoLinks, Tally

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tempa.core.clock import Clock
    from tempa.testing.clock import ManualClock
    from tempa.testing.contracts.bench import Store
    from tempa.webhooks.model import Attempt, Delivery
    from tempa.webhooks.ports import Sender


PASSING_SECONDS = 60.0  # for thousands of transactions on a busy machine


class Post:
    """A store, and what it takes to send what lies in it."""

    def __init__(self, store: Store, clock: Clock, wake: InProcessWake) -> None:
        self.store, self.clock, self.wake = store, clock, wake

    @property
    def bench(self) -> StoreBench:
        """The same, for the steps of the store's suites; on a clock that stands still."""
        clock: ManualClock = self.clock  # type: ignore[assignment]
        return StoreBench(store=self.store, clock=clock, wake=self.wake)

    async def announce(self, *urls: str, account: str = ACCOUNT) -> None:
        """One event of a new job, to each of `urls`."""
        await self.store.admit(a_new_job(self.clock, account=account))
        (event,) = await self.store.unplanned(10)
        assert await self.store.fan_out([planned(event, *urls)]) == len(urls)

    async def deliveries(self, limit: int = 1000) -> list[Delivery]:
        """All of the usual account, newest first."""
        return await self.store.deliveries(
            ACCOUNT, status=None, job_id=None, endpoint_id=None, limit=limit, before=None
        )

    async def record(self, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
        """A delivery and its attempts."""
        found = await self.store.delivery(ACCOUNT, delivery_id)
        assert found is not None
        return found

    async def until(
        self, condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Wait until `condition` holds: it is asked again whenever the store rings."""
        with self.wake.listen(DELIVERIES) as bell:
            async with asyncio.timeout(seconds):
                while not await condition():
                    await bell.wait(seconds)

    async def until_over(self, count: int, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until `count` deliveries have come to their end."""

        async def are_over() -> bool:
            return sum(one.finished_at is not None for one in await self.deliveries()) >= count

        await self.until(are_over, seconds)

    async def pass_time(self, step_seconds: float, is_over: Callable[[], bool], *, sleepers: int = 1) -> None:
        """Let time pass, a step whenever all has been done that could be, until it is over.

        `sleepers`: the roles at work that sleep by the clock, the deliverer among them.
        """
        clock: ManualClock = self.clock  # type: ignore[assignment]
        async with asyncio.timeout(PASSING_SECONDS):
            while not is_over():
                await clock.until_asleep(sleepers)
                await self.until(self._nothing_is_sent, PASSING_SECONDS)
                await clock.until_asleep(sleepers)  # what was settled just now has rung
                clock.advance(step_seconds)

    async def _nothing_is_sent(self) -> bool:
        return not (await self.store.delivery_counts()).get("leased")

    @asynccontextmanager
    async def delivering(self, sender: Sender, **changes: Any) -> AsyncIterator[asyncio.Event]:
        """A deliverer at work; in the end it is stopped, and must come to its end."""
        fields: dict[str, Any] = {
            "links": NoLinks(),
            "secrets": lambda _claimed, _now: ["whsec_" + "c2VjcmV0" * 4],
            "policy": RetryPolicy(max_retries=2),
            "meter": Tally(),
            "rng": random.Random(7),
            "timeout_seconds": 5.0,
            "body_bytes_max": 10_000,
            "user_agent": "Tempa",
        }
        deliverer = Deliverer(
            store=self.store, sender=sender, wake=self.wake, clock=self.clock, **(fields | changes)
        )
        stop = asyncio.Event()
        role = asyncio.create_task(deliverer.run(stop))
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await role


@pytest.fixture
async def open_post(tmp_path: Path) -> AsyncIterator[Callable[[Clock], Awaitable[Post]]]:
    """Opens a store that goes by the given clock."""
    opened: list[SqliteStore] = []

    async def open_it(clock: Clock) -> Post:
        wake = InProcessWake(clock)
        store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=wake)
        opened.append(store)
        return Post(store, clock, wake)

    yield open_it
    for store in opened:
        await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def open_any(
    request: pytest.FixtureRequest, open_post: Callable[[Clock], Awaitable[Post]]
) -> AsyncIterator[Callable[[Clock], Awaitable[Post]]]:
    """The same on either database."""
    if request.param == "sqlite":
        yield open_post
        return
    url: str = request.getfixturevalue("database")
    opened: list[PostgresStore] = []

    async def open_it(clock: Clock) -> Post:
        wake = InProcessWake(clock)
        opened.append(await PostgresStore.open(Address(url), wake=wake, clock=clock))
        return Post(opened[-1], clock, wake)

    yield open_it
    for store in opened:
        await store.close()
