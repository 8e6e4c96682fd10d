"""A deliverer at work on a real store."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.samples import ACCOUNT, a_new_job
from tempa.webhooks.deliver import Deliverer
from tests.unit.webhooks.samples import PATIENCE_SECONDS, NoLinks, Tally

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tempa.core.clock import Clock
    from tempa.webhooks.ports import Sender


class Post:
    """A store, and what it takes to send what lies in it."""

    def __init__(self, store: SqliteStore, clock: Clock, wake: InProcessWake) -> None:
        self.store, self.clock, self.wake = store, clock, wake

    async def announce(self, *urls: str, account: str = ACCOUNT) -> None:
        """One event of a new job, to each of `urls`."""
        await self.store.admit(a_new_job(self.clock, account=account))
        (event,) = await self.store.unplanned(10)
        assert await self.store.fan_out([planned(event, *urls)]) == len(urls)

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
