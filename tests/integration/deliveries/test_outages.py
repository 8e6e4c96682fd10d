"""A receiver that is down: few requests, no attempt of those that wait, all of it when it is back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tempa.core.retry import RetryPolicy
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.endpoints import register
from tempa.testing.contracts.samples import ACCOUNT
from tempa.webhooks.model import DeliveryStatus
from tempa.webhooks.ports import Answer
from tests.integration.deliveries.steps import Diary, backlog

if TYPE_CHECKING:
    from tempa.webhooks.model import Endpoint

WAITING = 300
OUTAGE_SECONDS = 120.0
REQUESTS_MAX = 20
BACK_SECONDS = 300.0
HEAL_SECONDS = 5.0  # between two looks for what died of the outage
DOWN = Answer(503, None)


async def an_outage(post: Any, sender: Diary, endpoint: Endpoint) -> None:
    """The receiver is down for two minutes, while so many wait there; then it is back, and all is taken."""
    clock = post.clock
    start, sent = clock.monotonic(), len(sender.sent)
    await post.pass_time(0.25, lambda: clock.monotonic() >= start + OUTAGE_SECONDS)
    assert 3 <= len(sender.sent) - sent <= REQUESTS_MAX
    attempts = Counter(one.attempts for one in await post.deliveries())
    assert attempts[0] >= WAITING - REQUESTS_MAX, "what is parked spends no attempts"

    sender.answer = Answer(200, None)
    back = clock.monotonic()
    while await post.store.delivery_counts() and clock.monotonic() < back + BACK_SECONDS:
        await let_pass(post, HEAL_SECONDS)
        await post.store.heal(WAITING)
    taken = [one.status for one in await post.deliveries()]
    assert taken.count(DeliveryStatus.DELIVERED) == WAITING
    assert await post.store.endpoint(ACCOUNT, endpoint.id) is not None


async def let_pass(post: Any, seconds: float) -> None:
    end = post.clock.monotonic() + seconds
    await post.pass_time(0.1, lambda: post.clock.monotonic() >= end)


async def test_a_dead_endpoint_gets_few_requests_and_then_everything(open_post: Any) -> None:
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(DOWN, clock)
    endpoint = await register(post.bench)
    await backlog(post, endpoint, WAITING)
    async with post.delivering(sender, policy=RetryPolicy()):
        await an_outage(post, sender, endpoint)


async def test_one_that_is_resumed_and_still_down_is_not_hammered(open_post: Any) -> None:
    """Ay-framework issues 191 and 220: who switches it on again lets loose all that waits."""
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(DOWN, clock)
    endpoint = await register(post.bench)
    await post.store.pause_endpoint(ACCOUNT, endpoint.id)
    await backlog(post, endpoint, WAITING)
    async with post.delivering(sender, policy=RetryPolicy()):
        await post.pass_time(1.0, lambda: clock.monotonic() >= 10)
        assert sender.sent == []
        assert await post.store.resume_endpoint(ACCOUNT, endpoint.id)
        await an_outage(post, sender, endpoint)
