"""The role that sends: every attempt ends on record, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.webhooks.deliver import Deliverer, DeliveryRescuer
from tempa.webhooks.model import DeadReason, DeliveryStatus
from tempa.webhooks.ports import Answer
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeSender, FakeStore, NoLinks, Tally, a_claim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tempa.core.roles import Role

OK = Answer(200, None)


def a_deliverer(store: FakeStore, sender: FakeSender, clock: ManualClock, **changes: Any) -> Deliverer:
    fields: dict[str, Any] = {
        "store": store,
        "sender": sender,
        "wake": InProcessWake(clock),
        "clock": clock,
        "links": NoLinks(),
        "secrets": lambda _account: ["whsec_" + "c2VjcmV0" * 4],
        "policy": RetryPolicy(max_retries=2),
        "meter": Tally(),
        "rng": random.Random(7),
        "timeout_seconds": 5.0,
        "body_bytes_max": 10_000,
        "user_agent": "Tempa",
    }
    return Deliverer(**(fields | changes))


@asynccontextmanager
async def running(role: Role) -> AsyncIterator[asyncio.Event]:
    """The role at work; stopped in the end, and it must come to its end."""
    stop = asyncio.Event()
    task = asyncio.create_task(role.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def settled(deliverer: Deliverer, store: FakeStore, count: int = 1) -> None:
    async with running(deliverer):
        await store.wait_for(lambda: len(store.settled) == count)


async def test_a_body_over_the_limit_is_never_sent_and_ends_dead() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    store.due = [a_claim()]

    await settled(a_deliverer(store, sender, ManualClock(), body_bytes_max=100), store)

    ((_, outcome, then),) = store.settled
    assert (then.status, then.reason) == (DeliveryStatus.DEAD, DeadReason.TOO_LARGE)
    assert (outcome.outcome, outcome.error, outcome.http_status) == ("dead", "too_large", None)
    assert sender.sent == []


async def test_a_sender_that_breaks_spends_a_retry_and_is_on_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, sender = FakeStore(), FakeSender(KeyError("a slip of ours"))
    store.due = [a_claim(1), a_claim(2, retries_spent=2, attempt=3)]

    await settled(a_deliverer(store, sender, ManualClock()), store, 2)

    ends = {claimed.id: (outcome.error, then.status, then.reason) for claimed, outcome, then in store.settled}
    assert ends == {
        "dlv_1": ("internal", DeliveryStatus.PENDING, None),
        "dlv_2": ("internal", DeliveryStatus.DEAD, DeadReason.EXHAUSTED),
    }
    broken = [record for record in caplog.records if "broke" in record.message]
    assert [record.exc_info is not None for record in broken] == [True, True]


async def test_a_message_that_cannot_be_rendered_or_signed_is_on_record_too() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    store.due = [a_claim()]

    await settled(a_deliverer(store, sender, ManualClock(), secrets={}.__getitem__), store)

    ((_, outcome, then),) = store.settled
    assert (outcome.error, then.status) == ("internal", DeliveryStatus.PENDING)
    assert sender.sent == []


async def test_while_the_store_is_away_an_outcome_waits_and_is_written_once() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    sender.gate.clear()
    store.due = [a_claim()]
    async with running(a_deliverer(store, sender, clock, in_flight_max=1)):
        await sender.under_way(1)
        store.away = 3
        sender.gate.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while store.away:
                await clock.until_asleep()
                clock.advance(0.5)
        clock.advance(0.5)
        await store.wait_for(lambda: len(store.settled) == 1)

    ((_, outcome, then),) = store.settled
    assert (outcome.http_status, then.status) == (200, DeliveryStatus.DELIVERED)
    assert len(sender.sent) == 1


async def test_a_store_that_is_away_when_deliveries_are_claimed_is_asked_again() -> None:
    store, sender, clock = FakeStore(), FakeSender(OK), ManualClock()
    store.due, store.away = [a_claim()], 1
    async with running(a_deliverer(store, sender, clock)):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await clock.until_asleep()
        clock.advance(1.0)
        await store.wait_for(lambda: store.settled)


async def test_a_slip_of_ours_goes_to_the_supervisor() -> None:
    store = FakeStore()
    deliverer = a_deliverer(store, FakeSender(OK), ManualClock(), in_flight_max="many")
    with pytest.raises(TypeError):
        await deliverer.run(asyncio.Event())


async def test_stop_lets_what_is_on_its_way_come_to_its_end() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    sender.gate.clear()
    store.due = [a_claim(1), a_claim(2)]
    async with running(a_deliverer(store, sender, ManualClock())) as stop:
        await sender.under_way(2)
        store.due = [a_claim(3)]
        stop.set()
        sender.gate.set()

    assert sorted(claimed.id for claimed, _, _ in store.settled) == ["dlv_1", "dlv_2"]
    assert [one.id for one in store.due] == ["dlv_3"]


async def test_no_more_are_in_flight_than_may_be() -> None:
    store, sender = FakeStore(), FakeSender(OK)
    sender.gate.clear()
    store.due = [a_claim(number) for number in range(1, 6)]
    async with running(a_deliverer(store, sender, ManualClock(), in_flight_max=2)):
        await sender.under_way(2)
        assert (len(sender.sent), len(store.due)) == (2, 3)
        sender.gate.set()
        await store.wait_for(lambda: len(store.settled) == 5)

    assert max(store.limits) == 2
    assert len(sender.sent) == 5


async def test_the_rescuer_frees_and_outlives_a_store_that_is_away() -> None:
    store: Any = FakeStore()
    store.away = 1
    async with running(DeliveryRescuer(store=store, every_seconds=0.001)):
        await store.wait_for(lambda: store.freed >= 2)
