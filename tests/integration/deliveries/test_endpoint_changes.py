"""What an endpoint's owner changes while deliveries to it are on their way, or wait."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.ids import new_id
from tempa.core.retry import RetryPolicy
from tempa.core.signing import hex_signature, new_secret
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL
from tempa.testing.contracts.endpoints import change, plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, COMPLETED
from tempa.webhooks import WebhookVerificationError, verify
from tempa.webhooks.keyring import Keyring
from tempa.webhooks.model import DeliveryStatus, EndpointStatus, SealedSecret
from tempa.webhooks.ports import Answer
from tests.integration.deliveries.steps import Script, backlog
from tests.unit.webhooks.samples import FakeSender

if TYPE_CHECKING:
    from tempa.webhooks.model import Endpoint
    from tempa.webhooks.ports import Outbound

LONG_SECONDS = 60.0  # for thousands of transactions on a busy machine
HOUR_SECONDS = 3600.0
KEYRING = Keyring(b"k" * 32, lambda _account: [new_secret()])


async def until_one_waits(post: Any) -> None:
    """Until the one delivery there is has failed once."""

    async def waits() -> bool:
        (delivery,) = await post.deliveries()
        return delivery.attempts == 1 and delivery.status is DeliveryStatus.PENDING

    await post.until(waits)


async def a_sealed_endpoint(post: Any, secret: str, **fields: Any) -> Endpoint:
    endpoint_id = new_id("ep")
    return await register(post.bench, id=endpoint_id, secrets=(sealed(post, secret, endpoint_id),), **fields)


def sealed(post: Any, secret: str, endpoint_id: str) -> SealedSecret:
    text = KEYRING.seal(secret, endpoint_id, ACCOUNT)
    return SealedSecret(sealed=text, created_at=post.clock.now())


def knows(request: Outbound, secret: str, now: float) -> bool:
    try:
        verify(request.body, dict(request.headers), secret, now=now)
    except WebhookVerificationError:
        return False
    return True


async def test_of_a_removed_one_with_a_thousand_waiting_all_end_canceled(open_any: Any) -> None:
    """Svix issue 1511: tasks of a deleted endpoint that fail for ever."""
    post, sender = await open_any(ManualClock()), FakeSender(Answer(200, None))
    endpoint = await register(post.bench)
    await backlog(post, endpoint, 1000)
    sender.gate.clear()
    async with post.delivering(sender):
        await sender.under_way(4)
        assert await post.store.remove_endpoint(ACCOUNT, endpoint.id)
        sender.gate.set()
        post.clock.advance(HOUR_SECONDS)
    await post.store.free_expired_deliveries()

    statuses = [delivery.status for delivery in await post.deliveries(2000)]
    assert statuses.count(DeliveryStatus.CANCELED) + statuses.count(DeliveryStatus.DELIVERED) == 1000
    assert statuses.count(DeliveryStatus.DELIVERED) <= len(sender.sent) == 4
    assert await post.store.delivery_counts() == {}
    async with post.delivering(sender):
        other = await register(post.bench, url=OTHER_URL)
        await backlog(post, other, 1)
        await sender.under_way(1)
    assert [request.url for request in sender.sent] == [URL] * 4 + [OTHER_URL]


async def test_what_came_in_an_hours_pause_is_all_delivered_once_and_in_order(open_any: Any) -> None:
    """Outpost issue 611: events that came while a destination was disabled were gone."""
    post, sender = await open_any(ManualClock()), FakeSender(Answer(200, None))
    endpoint = await register(post.bench)
    await post.store.pause_endpoint(ACCOUNT, endpoint.id)
    async with post.delivering(sender):
        for _ in range(5):
            await lives(post, endpoint, 50)
            post.clock.advance(HOUR_SECONDS / 5)
        parked = await post.store.delivery_counts()
        assert (parked, sender.sent) == ({"parked": 500}, [])

        assert await post.store.resume_endpoint(ACCOUNT, endpoint.id)
        await post.pass_time(0.05, lambda: len(sender.sent) >= 500)
        await post.until_over(500, seconds=LONG_SECONDS)
    await assert_each_once_and_in_order(post, sender, 500)


async def lives(post: Any, endpoint: Endpoint, count: int) -> None:
    """Two events of each of so many jobs: it starts, and it is completed."""
    for _ in range(count):
        await post.bench.admit()
    await post.bench.plan()
    for claimed in await post.bench.claim(count):
        assert await post.store.settle(claimed.lease, COMPLETED)
    assert await plan_to(post.bench, endpoint) == 2 * count


async def assert_each_once_and_in_order(post: Any, sender: FakeSender, count: int) -> None:
    told = [json.loads(request.body) for request in sender.sent]
    assert len({one["id"] for one in told}) == len(told) == count
    by_job = defaultdict(list)
    for one in told:
        by_job[one["data"]["job_id"]].append(one["type"].rpartition(".")[2])
    assert set(map(tuple, by_job.values())) == {("started", "completed")}
    delivered = [one for one in await post.deliveries() if one.status is DeliveryStatus.DELIVERED]
    assert (len(delivered), {one.attempts for one in delivered}) == (count, {1})


async def test_a_secret_that_rotates_between_two_attempts_signs_the_second(open_any: Any) -> None:
    post, sender = await open_any(ManualClock()), Script(503, 200)
    old, new = new_secret(), new_secret()
    endpoint = await a_sealed_endpoint(post, old)
    await backlog(post, endpoint, 1)
    async with post.delivering(sender, secrets=KEYRING.in_force):
        await until_one_waits(post)
        fresh = sealed(post, new, endpoint.id)
        assert await post.store.rotate_endpoint(ACCOUNT, endpoint.id, fresh, HOUR_SECONDS)
        post.clock.advance(10.0)
        await post.until_over(1)

    first, second = sender.sent
    start = post.clock.now().timestamp() - 10
    assert [knows(first, secret, start) for secret in (old, new)] == [True, False]
    assert [knows(second, secret, start + 10) for secret in (old, new)] == [True, True]
    assert first.body == second.body
    headers = dict(second.headers)
    assert headers["webhook-timestamp"] == str(int(start) + 10)
    assert headers["X-Webhook-Signature"] == hex_signature(new, second.body)
    assert headers["X-Webhook-Signature-Previous"] == hex_signature(old, second.body)


async def test_a_url_that_changes_between_two_attempts_gets_the_second(open_any: Any) -> None:
    post, sender = await open_any(ManualClock()), Script(503, 200)
    endpoint = await register(post.bench)
    await backlog(post, endpoint, 1)
    async with post.delivering(sender):
        await until_one_waits(post)
        await change(post.bench, endpoint, url=OTHER_URL)
        post.clock.advance(10.0)
        await post.until_over(1)

    assert [request.url for request in sender.sent] == [URL, OTHER_URL]
    ids = {dict(request.headers)["webhook-id"] for request in sender.sent}
    assert len(ids) == 1


async def test_after_410_nothing_is_sent_until_its_owner_resumes_it(open_any: Any) -> None:
    post, sender = await open_any(ManualClock()), Script(410, 200)
    endpoint = await register(post.bench, in_flight_max=1)
    await backlog(post, endpoint, 6)
    async with post.delivering(sender):
        await post.until_over(1)
        end = post.clock.now() + timedelta(hours=3)
        await post.pass_time(HOUR_SECONDS, lambda: post.clock.now() >= end)
        assert len(sender.sent) == 1
        assert await post.store.delivery_counts() == {"parked": 5, "dead": 1}

        resumed = await post.store.resume_endpoint(ACCOUNT, endpoint.id)
        assert resumed == replace(
            resumed, status=EndpointStatus.ACTIVE, parked_at=None, pending=5, held_until=None
        )
        await post.pass_time(0.05, lambda: len(sender.sent) >= 6)
        await post.until_over(6)

    counted = [one.status for one in await post.deliveries()]
    assert (counted.count(DeliveryStatus.DELIVERED), counted.count(DeliveryStatus.DEAD)) == (5, 1)


@pytest.mark.parametrize(("status", "attempts", "reason"), [(403, 1, "refused"), (500, 6, "exhausted")])
async def test_an_answer_that_stays_the_same_for_ever_gets_its_attempts_and_no_more(
    open_any: Any, status: int, attempts: int, reason: str
) -> None:
    """Convoy issue 1833: retries without end, attempts that were not counted. By the policy in force."""
    post, sender = await open_any(ManualClock()), FakeSender(Answer(status, None))
    endpoint = await register(post.bench)
    await backlog(post, endpoint, 1)
    end = post.clock.now() + timedelta(hours=1)
    async with post.delivering(sender, policy=RetryPolicy()):
        await post.pass_time(30.0, lambda: post.clock.now() >= end)
        await post.until_over(1)

    (delivery,) = await post.deliveries()
    assert (len(sender.sent), delivery.attempts, delivery.status) == (attempts, attempts, "dead")
    assert delivery.reason == reason
