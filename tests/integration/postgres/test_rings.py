"""Transactions that want the same rows in another order: none waits for one that waits for it.

A deadlock costs a second, and its victim's command is said to be unavailable. Each test holds a row in the
middle, so that all have locked what they can before they meet.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.core.accounts import ApiKey, digest
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.jobs.model import Beat
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    EXHAUSTED,
    LANE,
    LEASE_SECONDS,
    a_new_job,
    an_outcome,
    retried,
)
from tempa.webhooks.model import DeadFilter
from tests.integration.postgres.sessions import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tempa.adapters.stores.postgres.store import PostgresStore
    from tempa.testing.contracts.store import StoreBench
    from tests.integration.postgres.sessions import Session

CLOCK = SystemClock()
Pair = tuple["StoreBench", "StoreBench"]


@pytest.mark.usefixtures("no_second_try")
async def test_beats_and_endings_of_the_same_jobs(benches: Pair, session: Session) -> None:
    await session.find_by_index()
    here, there = benches
    for _ in range(5):
        jobs = [await here.admit() for _ in range(12)]
        leases = [claimed.lease for claimed in await here.claim(12)]
        beats = [Beat(lease=lease) for lease in leases]
        await session.hold(jobs[6].id)
        answers = await session.in_line(
            here.store.beat(beats, LEASE_SECONDS),
            there.store.beat(beats[::-1], LEASE_SECONDS),
            asyncio.gather(*(there.store.settle(lease, retried()) for lease in leases[::-1])),
            here.store.beat([*beats[6:], *beats[:6]], LEASE_SECONDS),
            asyncio.gather(*(here.store.settle(lease, COMPLETED) for lease in leases)),
        )
        assert not [answer for answer in answers if isinstance(answer, BaseException)]
        ends = [sum(pair) for pair in zip(answers[2][::-1], answers[4], strict=True)]
        assert ends == [1] * 12  # each attempt ended once
        for claimed in await here.claim(100):
            assert await here.store.settle(claimed.lease, COMPLETED)


async def test_who_is_given_up_for_another_is_tried_again(here: PostgresStore, session: Session) -> None:
    """Somebody in a console locks two jobs the other way round. Who waited first is let go."""
    jobs = sorted([(await here.admit(a_new_job(CLOCK))).job for _ in range(2)], key=lambda job: job.id)
    beats = [Beat(lease=claimed.lease) for claimed in await here.claim("w1", [LANE], 2, LEASE_SECONDS)]
    await session.hold(jobs[1].id)
    await session.run(f"set local deadlock_timeout = '{PATIENCE_SECONDS}s'")
    beating = asyncio.create_task(here.beat(beats, LEASE_SECONDS))
    await session.until_blocked(1)
    await session.value("select id from job where id = $1 for update", jobs[0].id)
    await session.run("commit")

    answers = await asyncio.wait_for(beating, PATIENCE_SECONDS)

    assert [answer.held for answer in answers] == [True, True]
    assert here.writes.failures == 0


@pytest.mark.usefixtures("no_second_try")
async def test_reports_of_last_use_of_the_same_keys(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    """Every process reports what it has seen, in the order in which it has seen it."""
    await session.find_by_index()
    keys = [a_key(f"{number}") for number in range(5)]
    for key in keys:
        await here.add_key(key)
    used = {key.id: CLOCK.now() for key in keys}
    await session.hold(keys[2].id, "api_key")

    answers = await session.in_line(
        here.touch_keys(used),
        there.touch_keys(dict(reversed(used.items()))),
        here.touch_keys({key.id: CLOCK.now() for key in (*keys[2:], *keys[:2])}),
    )

    assert answers == [None] * 3
    assert all(key.last_used_at for key in await here.keys(ACCOUNT))


@pytest.mark.usefixtures("no_second_try")
async def test_people_who_drive_and_drop_the_same_letters(benches: Pair, session: Session) -> None:
    await session.find_by_index()
    here, there = benches
    letters = []
    for number in range(5):
        letters += await here.deliveries_to(f"https://hooks.example/{number}")
        (claimed,) = await here.take()
        assert await here.store.settle_delivery(claimed, an_outcome(), EXHAUSTED)
    which = DeadFilter(delivery_ids=tuple(letters))
    await session.hold(letters[2], "delivery")

    answers = await session.in_line(
        here.store.redrive(ACCOUNT, which, 0.0),
        there.store.discard(ACCOUNT, which, "gone"),
        there.store.redrive(ACCOUNT, which, 0.0),
    )

    assert answers == [5, 0, 0]


def a_key(secret: str) -> ApiKey:
    return ApiKey(
        id=new_id("key"),
        account=ACCOUNT,
        name=secret,
        hint=secret,
        digest=digest(secret),
        scopes=("jobs",),
        created_at=CLOCK.now(),
    )
