"""The role that makes deliveries of events: in order, all of them, whatever one of them holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.events import Event
from tempa.core.work import EVENTS
from tempa.testing.clock import ManualClock
from tempa.webhooks import fanout
from tempa.webhooks.fanout import FanOut
from tempa.webhooks.model import Subscription
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeStore

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def an_event(number: int, **changes: Any) -> Event:
    announce: dict[str, Any] = {
        "family": "cad_generation",
        "webhook_url": "https://hooks.example/",
        "webhook_events": [],
        "data": {"job_id": "cad_1", "tags": {}},
        "links": {},
    }
    event = Event(
        id=f"evt_{number}",
        account="a",
        job_id="cad_1",
        sequence=number,
        type="job.completed",
        at=NOW,
        body={},
        announce=announce,
    )
    return replace(event, **changes)


def a_fanout(store: Any, wake: InProcessWake) -> FanOut:
    return FanOut(store=store, wake=wake)


def made(store: FakeStore) -> Sequence[tuple[str, int]]:
    return [(plan.event_id, len(plan.deliveries)) for batch in store.batches for plan in batch]


async def test_all_there_is_is_fanned_out_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "_BATCH", 2)
    store = FakeStore()
    store.events = [an_event(number) for number in range(1, 6)]

    assert await a_fanout(store, InProcessWake()).drain() == 5

    assert made(store) == [(f"evt_{number}", 1) for number in range(1, 6)]
    assert [len(batch) for batch in store.batches] == [2, 2, 1]


async def test_an_event_that_cannot_be_read_stops_nobody_elses(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore()
    store.events = [an_event(1), an_event(2, announce={"webhook_url": "https://x.example/"}), an_event(3)]

    assert await a_fanout(store, InProcessWake()).drain() == 2

    assert made(store) == [("evt_1", 1), ("evt_2", 0), ("evt_3", 1)]
    (record,) = caplog.records
    assert (record.levelname, vars(record)["event_id"]) == ("ERROR", "evt_2")


async def test_endpoints_are_looked_up_once_a_batch_for_the_accounts_in_it() -> None:
    store = FakeStore()
    store.registered = [Subscription("ep_1", "a", None), Subscription("ep_2", "b", ("job.completed",))]
    store.events = [
        an_event(1),
        an_event(2, account="b"),
        an_event(3, account="c"),
        an_event(4, announce=None),
    ]

    assert await a_fanout(store, InProcessWake()).drain() == 5

    assert made(store) == [("evt_1", 2), ("evt_2", 2), ("evt_3", 1), ("evt_4", 0)]
    assert store.looked_up == [["a", "b", "c"]]


async def test_an_event_without_a_trace_is_announced() -> None:
    store = FakeStore()
    store.events = [an_event(1)]
    await a_fanout(store, InProcessWake()).drain()
    assert store.batches[0][0].deliveries[0].message.traceparent is None


async def test_a_store_that_is_away_is_asked_again_at_the_next_ring() -> None:
    store, clock = FakeStore(), ManualClock()
    wake = InProcessWake(clock)
    store.events, store.away = [an_event(1)], 1
    stop = asyncio.Event()
    task = asyncio.create_task(a_fanout(store, wake).run(stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await clock.until_asleep()
        assert store.batches == []
        wake.ring(EVENTS)
        await store.wait_for(lambda: store.batches)
        stop.set()
        await task
    assert made(store) == [("evt_1", 1)]
