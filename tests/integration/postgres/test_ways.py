"""How many ways to the server and back each of the hot commands takes: each is a fifth of a millisecond."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tempa.adapters.stores.postgres.connections import SESSION
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import COMPLETED, LANE, LEASE_SECONDS, OTHER_ACCOUNT, a_key, a_new_job
from tests.integration.postgres.gauge import Gauge, store_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CLOCK = SystemClock()


@pytest.fixture
async def gauge(database: str) -> AsyncIterator[Gauge]:
    gauge = Gauge(await asyncpg.connect(database, server_settings=SESSION))
    yield gauge
    await gauge.close()


@contextmanager
def counting(gauge: Gauge) -> Iterator[list[str]]:
    """What is sent while inside, a message each. The driver tells a turn of the loop later."""
    sent: list[str] = []

    def note(message: Any) -> None:
        sent.append(message.query)

    with gauge._connection.query_logger(note):
        yield sent


async def test_the_ways_of_a_jobs_life(gauge: Gauge) -> None:
    store = store_on(gauge)
    await store.admit(a_new_job(CLOCK))  # its queue is known from here on
    await store.claim("w1", [LANE], 1, LEASE_SECONDS)

    with counting(gauge) as admission:
        await store.admit(a_new_job(CLOCK, key=a_key()))
    with counting(gauge) as claim:
        (claimed,) = await store.claim("w1", [LANE], 1, LEASE_SECONDS)
    with counting(gauge) as settlement:
        assert await store.settle(claimed.lease, COMPLETED)
    with counting(gauge) as delay:
        assert await store.next_delayed([LANE]) is None
    with counting(gauge) as empty_claim:
        assert await store.claim("w1", [LANE], 1, LEASE_SECONDS) == []
    await store.admit(a_new_job(CLOCK, account=OTHER_ACCOUNT))
    with counting(gauge) as claim_among_two:
        assert await store.claim("w1", [LANE], 1, LEASE_SECONDS)
    await store.counts()

    ways = [len(sent) for sent in (admission, claim, settlement, empty_claim, delay)]
    assert ways == [1, 4, 4, 3, 1]
    assert len(claim_among_two) == 5


async def test_a_settlement_of_a_job_from_another_process_takes_no_more(gauge: Gauge) -> None:
    """What it was asked for is read in the same statement."""
    admitting, settling = store_on(gauge), store_on(gauge)
    await admitting.admit(a_new_job(CLOCK, tags={"part": "7"}))
    (claimed,) = await admitting.claim("w1", [LANE], 1, LEASE_SECONDS)

    with counting(gauge) as sent:
        assert await settling.settle(claimed.lease, COMPLETED)

    *_, end = await settling.job_events(claimed.job.id, 0, 10)
    assert end.announce
    assert end.announce["data"]["tags"] == {"part": "7"}
    assert len(sent) == 4
