"""Deadlines, leases, rates and clocks: what time may do to a delivery, and what it may not."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.core.retry import RetryPolicy
from tempa.core.signing import new_secret
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.delivery_steps import URL
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT
from tempa.webhooks import verify
from tempa.webhooks.model import DeadFilter, DeliveryStatus
from tempa.webhooks.ports import Answer
from tempa.wiring.clock_watch import ClockWatch
from tests.integration.deliveries.steps import Diary, Script, backlog
from tests.unit.webhooks.samples import PATIENCE_SECONDS, FakeSender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime


SECRET = new_secret()
OK = Answer(200, None)
MAX_TIMEOUT_SECONDS = 30.0  # the longest that may be set


async def test_an_answer_at_the_last_second_is_followed_by_no_second_request(open_any: Any) -> None:
    """Svix issue 2181, OpenWA issue 1607: a lease shorter than the deadline, a sweeper that sends again."""
    post, sender = await open_any(ManualClock()), FakeSender(OK)
    await post.announce(URL)
    sender.gate.clear()
    fields: dict[str, Any] = {"timeout_seconds": MAX_TIMEOUT_SECONDS}
    async with post.delivering(sender, **fields), post.delivering(sender, **fields):
        await sender.under_way(1)
        for _ in range(29):
            post.clock.advance(1.0)
            assert await post.store.free_expired_deliveries() == 0
        sender.gate.set()
        await post.until_over(1)

    assert len(sender.sent) == 1


async def test_one_a_minute_is_one_in_every_minute(open_any: Any) -> None:
    """Convoy issue 1927: a rate limit that had no effect."""
    clock = ManualClock()
    post, sender = await open_any(clock), Diary(OK, clock)
    endpoint = await register(post.bench, rate_per_second=1 / 60)
    await backlog(post, endpoint, 5)
    async with post.delivering(sender):
        await post.pass_time(0.25, lambda: len(sender.sent) >= 5)
        await post.until_over(5)

    assert [round(at / 60, 2) for at in sender.times] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("retry_after", ["120", "Thu, 01 Jan 2026 00:02:00 GMT"])
async def test_until_retry_after_nothing_at_all_goes_to_that_endpoint(
    open_any: Any, retry_after: str
) -> None:
    """Svix issue 2200. Other deliveries that wait there, and such as come meanwhile, are held too."""
    clock = ManualClock()
    post, sender = await open_any(clock), Diary(Answer(429, None, {"retry-after": retry_after}), clock)
    endpoint = await register(post.bench, in_flight_max=1)
    await backlog(post, endpoint, 3)
    async with post.delivering(sender, policy=RetryPolicy()):
        await sender.under_way(1)
        await post.pass_time(1.0, lambda: clock.monotonic() >= 60)
        sender.answer = OK
        await backlog(post, endpoint, 1)
        await post.pass_time(0.5, lambda: len(sender.sent) >= 5)
        await post.until_over(4)

    assert sender.times[0] == 0
    assert all(at >= 120 for at in sender.times[1:])
    assert sender.times[-1] <= 123  # at once when it ends, and the first after its own jitter


async def test_a_letter_that_is_redriven_a_day_later_is_signed_anew(open_any: Any) -> None:
    """Svix issue 93, jaas_demo issue 8: old signatures on what is sent again."""
    post, sender = await open_any(ManualClock()), Script(404, 200)
    await post.announce(URL)
    async with post.delivering(sender, secrets=lambda _claimed, _now: [SECRET]):
        await post.until_over(1)
        (letter,) = await post.deliveries()
        post.clock.advance(86_400.0)
        assert await post.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(letter.id,)), 0.0) == 1
        await post.until(lambda: is_delivered(post))

    first, second = sender.sent
    now = post.clock.now().timestamp()
    assert verify(second.body, dict(second.headers), SECRET, now=now)["id"] == letter.event_id
    assert verify(first.body, dict(first.headers), SECRET, now=now - 86_400)["id"] == letter.event_id
    assert dict(first.headers)["webhook-signature"] != dict(second.headers)["webhook-signature"]


async def is_delivered(post: Any) -> bool:
    return all(one.status is DeliveryStatus.DELIVERED for one in await post.deliveries())


async def test_a_receiver_that_is_found_again_gets_it(open_any: Any) -> None:
    """Outpost issue 314: a name server that fails for 20 s."""
    clock = ManualClock()
    post, sender = await open_any(clock), Diary(Answer(None, "dns"), clock)
    await post.announce(URL)
    async with post.delivering(sender, policy=RetryPolicy()):
        await post.pass_time(0.5, lambda: clock.monotonic() >= 20)
        sender.answer = OK
        await post.pass_time(0.5, lambda: clock.monotonic() >= 80)
        await post.until_over(1)

    (delivery,) = await post.deliveries()
    _, attempts = await post.record(delivery.id)
    assert delivery.status is DeliveryStatus.DELIVERED
    assert {one.error for one in attempts[:-1]} == {"dns"}
    assert len(attempts) == len(sender.sent)


@asynccontextmanager
async def watched(post: Any) -> AsyncIterator[None]:
    """With what the embedded server has against jumps; PostgreSQL's own clock is nobody's here."""
    assert isinstance(post.store, SqliteStore)
    stop = asyncio.Event()
    role = asyncio.create_task(ClockWatch(store=post.store, clock=post.clock).run(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await role


async def due_times(post: Any) -> list[datetime]:
    return sorted(one.next_attempt_at for one in await post.deliveries() if one.next_attempt_at)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_jump_of_the_wall_clock_stalls_nothing_and_floods_nobody(open_post: Any, hours: int) -> None:
    """Forty at ten hosts have failed and wait; then an hour is gained or lost."""
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(Answer(503, None), clock)
    endpoints = [await register(post.bench, url=f"https://h{n}.example/", in_flight_max=2) for n in range(10)]
    for endpoint in endpoints:
        await backlog(post, endpoint, 2)
    async with post.delivering(sender, policy=RetryPolicy()), watched(post):
        await sender.under_way(20)
        await post.pass_time(0.01, lambda: clock.monotonic() >= 0.02, sleepers=2)
        clock.jump(timedelta(hours=hours))
        sender.answer = OK
        sender.most = 0
        await post.pass_time(0.25, lambda: len(sender.sent) >= 40, sleepers=2)
        await post.until_over(20)

    assert sender.most <= 20
    assert sender.times[-1] <= 5.0  # the ceiling of a first retry is 2 s; the watch looks once a second
    assert all(one.attempts == 2 for one in await post.deliveries())


async def test_a_jump_back_brings_no_retry_early(open_post: Any) -> None:
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(Answer(503, None, {"retry-after": "120"}), clock)
    await post.announce(URL)
    async with post.delivering(sender, policy=RetryPolicy()), watched(post):
        await sender.under_way(1)
        await post.pass_time(0.5, lambda: clock.monotonic() >= 30, sleepers=2)
        clock.jump(timedelta(hours=-1))
        sender.answer = OK
        await post.pass_time(0.5, lambda: len(sender.sent) >= 2, sleepers=2)
        await post.until_over(1)

    assert 120 <= sender.times[1] <= 124


@pytest.mark.xfail(strict=True, reason="a jump forward ends a hold early: ClockWatch follows jumps back only")
async def test_a_jump_forward_ends_no_hold_early(open_post: Any) -> None:
    clock = ManualClock()
    post, sender = await open_post(clock), Diary(Answer(503, None, {"retry-after": "120"}), clock)
    await post.announce(URL)
    async with post.delivering(sender, policy=RetryPolicy()), watched(post):
        await sender.under_way(1)
        await post.pass_time(0.5, lambda: clock.monotonic() >= 30, sleepers=2)
        clock.jump(timedelta(hours=1))
        sender.answer = OK
        await post.pass_time(0.5, lambda: len(sender.sent) >= 2, sleepers=2)
        await post.until_over(1)

    assert 120 <= sender.times[1] <= 124


async def test_what_is_told_while_the_receivers_own_clock_is_off_is_as_it_answers(open_any: Any) -> None:
    """An hour off: it takes what it takes; a date it gives is read by our clock, and bounded."""
    clock = ManualClock()
    late = {"date": "Thu, 01 Jan 2026 01:00:00 GMT", "retry-after": "Thu, 01 Jan 2026 01:00:10 GMT"}
    post, sender = await open_any(clock), Diary(Answer(429, None, late), clock)
    endpoint = await register(post.bench)
    await plan_to(post.bench, endpoint)
    async with post.delivering(sender, policy=RetryPolicy()):
        await sender.under_way(1)
        sender.answer = Answer(200, None, {"date": "Wed, 31 Dec 2025 23:00:00 GMT"})
        await post.pass_time(60.0, lambda: len(sender.sent) >= 2)
        await post.until_over(1)

    assert 3610 <= sender.times[1] <= 3672
