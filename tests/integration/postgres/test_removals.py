"""An endpoint is removed while others are at its deliveries: nobody waits in a ring, and nothing strands.

The servers' sessions look for deadlocks after a minute, so that one would not go unnoticed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands import deliveries, endpoints
from tempa.testing.contracts.bench import ROOMY
from tempa.testing.contracts.delivery_steps import settle, with_attempts
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, LEASE_SECONDS, pending
from tempa.webhooks.model import DeadFilter, DeliveryStatus
from tempa.webhooks.room import Room
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished

if TYPE_CHECKING:
    from tempa.testing.contracts.store import StoreBench
    from tempa.webhooks.model import ClaimedDelivery, Endpoint
    from tests.integration.postgres.sessions import Session

Pair = tuple["StoreBench", "StoreBench"]
PARKED_SECONDS = 72 * 3600.0


@pytest.fixture
async def patient(session: Session) -> None:
    """Those who come later."""
    await session.run(
        "do $$ begin "
        "execute format('alter database %I set deadlock_timeout = %L', current_database(), '60s'); "
        "end $$"
    )


async def one_under_way(bench: StoreBench) -> tuple[Endpoint, ClaimedDelivery]:
    endpoint = await register(bench)
    await plan_to(bench, endpoint)
    (claimed,) = await bench.take()
    return endpoint, claimed


@pytest.mark.usefixtures("patient")
async def test_who_removes_and_who_gives_up_do_not_wait_for_each_other(
    benches: Pair, session: Session
) -> None:
    here, there = benches
    endpoint = await register(here)
    for _ in range(3):
        await plan_to(here, endpoint)
    for claimed in await here.take(3):
        await settle(here, claimed, pending())
    here.clock.advance(PARKED_SECONDS)
    await session.hold(endpoint.id, "endpoint")

    answers = await session.in_line(
        here.store.expire_parked(PARKED_SECONDS, 10),
        there.store.remove_endpoint(ACCOUNT, endpoint.id),
    )

    assert answers == [0, True]
    assert await here.store.delivery_counts() == {}


@pytest.mark.usefixtures("patient")
async def test_what_was_delivered_while_its_endpoint_was_removed_stays_delivered(
    benches: Pair, session: Session
) -> None:
    here, there = benches
    endpoint, claimed = await one_under_way(here)
    await session.hold(endpoint.id, "endpoint")

    answers = await session.in_line(
        settle(here, claimed, DELIVERED, 200),
        there.store.remove_endpoint(ACCOUNT, endpoint.id),
    )

    assert answers == [True, True]
    assert (await with_attempts(here, claimed.id))[0].status is DeliveryStatus.DELIVERED


@pytest.mark.usefixtures("patient")
async def test_a_lease_that_ran_out_is_not_waited_for_while_its_outcome_is_written(
    benches: Pair, session: Session
) -> None:
    here, there = benches
    endpoint, claimed = await one_under_way(here)
    here.let_lapse()
    await session.hold(endpoint.id, "endpoint")
    settling = asyncio.ensure_future(settle(here, claimed, DELIVERED, 200))
    await session.until_blocked(1)

    freed = await asyncio.wait_for(there.store.free_expired_deliveries(), PATIENCE_SECONDS)

    await session.run("commit")
    assert (freed, await asyncio.wait_for(settling, PATIENCE_SECONDS)) == (0, True)


async def test_a_redrive_that_waits_for_a_removal_drives_nothing(benches: Pair, session: Session) -> None:
    here, there = benches
    endpoint, claimed = await one_under_way(here)
    await settle(here, claimed, EXHAUSTED)
    which = DeadFilter(endpoint_id=endpoint.id)

    async with unfinished(there.store, endpoints._remove(ACCOUNT, endpoint.id)):  # type: ignore[arg-type]
        driving = asyncio.ensure_future(here.store.redrive(ACCOUNT, which, 0.0))
        await session.until_blocked(1)

    assert await asyncio.wait_for(driving, PATIENCE_SECONDS) == 0
    assert await here.store.delivery_counts() == {"dead": 1}


@pytest.mark.parametrize("again", ["heal", "redrive"])
async def test_nothing_begins_anew_while_a_claim_decides_whose_turn_it_is(
    benches: Pair, session: Session, again: str
) -> None:
    """The claim has seen that no earlier event of a job waits, and is about to take the later one."""
    here, there = benches
    endpoint, claimed = await one_under_way(here)
    await settle(here, claimed, EXHAUSTED)
    await here.plan()
    await plan_to(here, endpoint)
    (taken,) = await here.take()
    await settle(here, taken, DELIVERED, 200)
    which = DeadFilter(delivery_ids=(claimed.id,))
    begin = here.store.heal(10) if again == "heal" else here.store.redrive(ACCOUNT, which, 0.0)

    async with unfinished(there.store, deliveries._claim(Room(ROOMY), 10, LEASE_SECONDS)):  # type: ignore[arg-type]
        beginning = asyncio.ensure_future(begin)
        await session.until_blocked(1)
        assert (await with_attempts(there, claimed.id))[0].status is DeliveryStatus.DEAD

    assert await asyncio.wait_for(beginning, PATIENCE_SECONDS) == 1
