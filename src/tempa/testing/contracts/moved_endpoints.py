"""Contract of `WebhookStore` for endpoints that begin anew: at another URL, or as their owner wishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.core.retry import RetryPolicy
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, endpoint_of, settle, with_attempts
from tempa.testing.contracts.endpoints import change, plan_to, register
from tempa.testing.contracts.samples import (
    ACCOUNT,
    DELIVERED,
    EXHAUSTED,
    LEASE_SECONDS,
    REFUSED,
    pending,
)
from tempa.webhooks.deliver import follow
from tempa.webhooks.model import Backoff, DeliveryStatus, EndpointStatus
from tempa.webhooks.ports import Answer
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import ClaimedDelivery, Endpoint, Next

    Begin = Callable[[StoreBench, Endpoint], Awaitable[None]]

HOUR_SECONDS = 3600.0
SLOW_MS = 3000


async def _moved(bench: StoreBench, endpoint: Endpoint) -> None:
    assert (await change(bench, endpoint, url=f"{URL}/new")).status is EndpointStatus.ACTIVE


async def _resumed(bench: StoreBench, endpoint: Endpoint) -> None:
    assert await bench.store.resume_endpoint(ACCOUNT, endpoint.id)


BEGINNINGS = pytest.mark.parametrize("begin_anew", [_moved, _resumed])


class NewBeginningContract:
    """Whatever an endpoint's answers said of it ends with a resume, and with another URL."""

    @BEGINNINGS
    async def test_a_hold_ends_for_the_delivery_that_was_answered_so_too(
        self, bench: StoreBench, begin_anew: Begin
    ) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        answer = Answer(429, None, {"retry-after": "3600"})
        then = follow(answer, 0, RetryPolicy(), bench.clock.now(), Backoff())
        await settle(bench, claimed, then, 429)
        delivery, _ = await with_attempts(bench, claimed.id)
        held = await endpoint_of(bench, claimed.id)
        assert delivery.next_attempt_at == held.held_until
        bench.clock.advance(HOUR_SECONDS)
        assert await bench.take() == []  # one second more, by the dice

        bench.clock.advance(-HOUR_SECONDS + 2.0)
        await begin_anew(bench, endpoint)

        assert (await endpoint_of(bench, claimed.id)).held_until is None
        assert [one.id for one in await bench.take()] == [claimed.id]

    @BEGINNINGS
    async def test_its_breaker_closes_and_what_was_parked_goes_out_paced(
        self, bench: StoreBench, begin_anew: Begin
    ) -> None:
        endpoint = await register(bench)
        for _ in range(4):
            await plan_to(bench, endpoint)
        for claimed in await bench.take(3):
            await settle(bench, claimed, pending())
        assert await bench.store.delivery_counts() == {"parked": 4}

        await begin_anew(bench, endpoint)

        assert await bench.store.delivery_counts() == {"pending": 4}
        assert len(await bench.take(10)) == 1
        bench.clock.advance(0.2)
        assert len(await bench.take(10)) == 1

    @BEGINNINGS
    async def test_nobody_expects_it_to_be_slow_any_more(self, bench: StoreBench, begin_anew: Begin) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        await settle(bench, claimed, DELIVERED, 200, SLOW_MS)
        await plan_to(bench, endpoint)
        room = Room(10)  # of which a new one may have a third slot of its account's, and a slow one may not
        for _ in range(2):
            room.enter(ACCOUNT, "elsewhere.example")
        assert (await bench.store.claim_deliveries(room, 10, LEASE_SECONDS)).taken == ()

        await begin_anew(bench, endpoint)

        assert len((await bench.store.claim_deliveries(room, 10, LEASE_SECONDS)).taken) == 1

    async def test_a_paused_one_that_moves_stays_paused(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        await bench.store.pause_endpoint(ACCOUNT, endpoint.id)
        moved = await change(bench, endpoint, url=OTHER_URL)

        assert (moved.status, moved.parked_at) == (EndpointStatus.PAUSED, bench.clock.now())
        assert await bench.take() == []

    async def test_what_has_died_is_healed_by_the_new_ones_success(self, bench: StoreBench) -> None:
        endpoint, claimed = await _under_way(bench)
        await settle(bench, claimed, EXHAUSTED)
        await change(bench, endpoint, url=OTHER_URL)
        await bench.plan()  # what was told of it goes elsewhere
        await plan_to(bench, endpoint)
        (next_one,) = await bench.take(10)
        await settle(bench, next_one, DELIVERED, 200)

        assert await bench.store.heal(10) == 1


class LateAnswerContract:
    """What the URL answers that an endpoint has left tells nothing of the one it has."""

    @pytest.mark.parametrize(
        ("then", "http_status", "status"),
        [
            (REFUSED, 410, DeliveryStatus.DEAD),
            (pending(hold_seconds=HOUR_SECONDS), 429, DeliveryStatus.PENDING),
            (DELIVERED, 200, DeliveryStatus.DELIVERED),
        ],
    )
    async def test_its_attempt_is_on_record_and_the_endpoint_stays_as_it_is(
        self, bench: StoreBench, then: Next, http_status: int, status: DeliveryStatus
    ) -> None:
        endpoint, late = await _under_way(bench)
        moved = await change(bench, endpoint, url=OTHER_URL)

        assert await settle(bench, late, then, http_status, SLOW_MS)

        delivery, (attempt,) = await with_attempts(bench, late.id)
        assert (delivery.status, attempt.http_status) == (status, http_status)
        after = await endpoint_of(bench, late.id)
        assert (after.status, after.held_until, after.health) == (EndpointStatus.ACTIVE, None, None)
        assert after.parked_at == moved.parked_at is None
        await plan_to(bench, endpoint)
        assert {claimed.url for claimed in await bench.take(10)} == {OTHER_URL}

    async def test_late_failures_open_no_breaker_and_a_late_success_closes_none(
        self, bench: StoreBench
    ) -> None:
        endpoint = await register(bench)
        for _ in range(4):
            await plan_to(bench, endpoint)
        late = await bench.take(4)
        await change(bench, endpoint, url=OTHER_URL)
        for claimed in late[:3]:
            await settle(bench, claimed, pending())
        assert (await endpoint_of(bench, late[0].id)).parked_at is None

        for claimed in await bench.take(3):
            await settle(bench, claimed, pending())
        assert (await endpoint_of(bench, late[0].id)).parked_at is not None
        await settle(bench, late[3], DELIVERED, 200)
        assert (await endpoint_of(bench, late[0].id)).parked_at is not None

    async def test_what_dies_of_it_is_healed_at_the_new_one(self, bench: StoreBench) -> None:
        endpoint, late = await _under_way(bench)
        await change(bench, endpoint, url=OTHER_URL)
        await settle(bench, late, EXHAUSTED)
        await bench.plan()  # what was told of it goes elsewhere
        await plan_to(bench, endpoint)
        (next_one,) = await bench.take(10)
        await settle(bench, next_one, DELIVERED, 200)

        assert await bench.store.heal(10) == 1


async def _under_way(bench: StoreBench) -> tuple[Endpoint, ClaimedDelivery]:
    """An endpoint with one attempt on its way."""
    endpoint = await register(bench)
    await plan_to(bench, endpoint)
    (claimed,) = await bench.take(10)
    return endpoint, claimed
