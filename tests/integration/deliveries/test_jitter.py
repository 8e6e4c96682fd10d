"""The waits before retries as they stand in the store: uniform to their ceiling, at each index."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import LEASE_SECONDS, an_outcome
from tempa.webhooks.deliver import follow
from tempa.webhooks.model import DeliveryStatus
from tempa.webhooks.ports import Answer
from tempa.webhooks.room import Room
from tests.unit.webhooks.test_retry import kolmogorov_p

if TYPE_CHECKING:
    from tempa.webhooks.model import ClaimedDelivery

AMPLE = 10_000_000  # slots
CEILINGS = (2.0, 4.0, 8.0, 16.0, 32.0)  # of the promised schedule, written out
REFUSED = Answer(503, None)


async def test_the_waits_that_are_stored_are_uniform_to_their_ceiling(open_any: Any) -> None:
    await check(await open_any(ManualClock()), 300)


@pytest.mark.chaos
async def test_ten_thousand_waits_that_are_stored_are_uniform_to_their_ceiling(open_post: Any) -> None:
    await check(await open_post(ManualClock()), 10_000)


async def check(post: Any, samples: int) -> None:
    """All fail in one tick, six times; each at an endpoint of its own, which parks nothing for that."""
    dice = random.Random(20261201)
    await post.announce(*(f"https://h{number}.example/" for number in range(samples)))
    for index, ceiling in enumerate(CEILINGS):
        assert await fail_all(post, dice) == samples
        waits = [seconds_to_go(post, one) for one in await post.deliveries(samples)]
        assert len(waits) == samples
        assert 0 <= min(waits) < max(waits) <= ceiling
        assert kolmogorov_p(waits, ceiling) > 0.01, f"before retry {index}"
        post.clock.advance(ceiling + 0.001)

    assert await fail_all(post, dice) == samples
    assert {one.status for one in await post.deliveries(samples)} == {DeliveryStatus.DEAD}


async def fail_all(post: Any, dice: random.Random) -> int:
    """An attempt of each that is due, answered with 503; how many those were."""
    room, failed = Room(AMPLE), 0
    while taken := (await post.store.claim_deliveries(room, 500, LEASE_SECONDS)).taken:
        await asyncio.gather(*(fail(post, claimed, dice) for claimed in taken))
        failed += len(taken)
    return failed


async def fail(post: Any, claimed: ClaimedDelivery, dice: random.Random) -> None:
    then = follow(REFUSED, claimed.retries_spent, RetryPolicy(), post.clock.now(), dice)
    assert await post.store.settle_delivery(claimed, an_outcome(http_status=503), then)


def seconds_to_go(post: Any, delivery: Any) -> float:
    wait: float = (delivery.next_attempt_at - post.clock.now()).total_seconds()
    return wait
