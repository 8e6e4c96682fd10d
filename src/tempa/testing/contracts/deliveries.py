"""Contract of `WebhookStore` for the deliverer: made once, in turn, in order, on record."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tempa.core.work import DELIVERIES
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DELIVERED,
    EXHAUSTED,
    LEASE_SECONDS,
    REFUSED,
    an_outcome,
    pending,
)
from tempa.webhooks.model import Attempt, DeadFilter, DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import ClaimedDelivery, Delivery, Next

URL = "https://hooks.example/a"
OTHER_URL = "https://hooks.example/b"
IN_FLIGHT_MAX = 4  # attempts to one endpoint at a time


class FanOutContract:
    """From an event to deliveries."""

    async def test_a_delivery_is_pending_at_once(self, bench: StoreBench) -> None:
        job = await bench.admit()
        (event,) = await bench.store.unplanned(10)
        bench.clock.advance(1.0)
        plan = planned(event, URL)

        async with bench.expect_ring(DELIVERIES):
            assert await bench.store.fan_out([plan]) == 1

        (delivery,) = await _list(bench)
        assert (delivery.id, delivery.event_id) == (plan.deliveries[0].id, event.id)
        assert (delivery.account, delivery.job_id, delivery.url) == (ACCOUNT, job.id, URL)
        assert delivery.type == "cad_generation.queued"
        assert (delivery.status, delivery.attempts, delivery.reason) == (DeliveryStatus.PENDING, 0, None)
        assert delivery.created_at == delivery.next_attempt_at == bench.clock.now()
        assert delivery.finished_at is None

    async def test_one_event_goes_to_every_url_that_is_planned(self, bench: StoreBench) -> None:
        await bench.admit()

        assert await bench.plan(URL, OTHER_URL) == 2

        taken = await bench.take(10)
        assert {claimed.url for claimed in taken} == {URL, OTHER_URL}
        assert len({claimed.message.id for claimed in taken}) == 1

    async def test_one_event_goes_to_one_url_once(self, bench: StoreBench) -> None:
        await bench.admit()

        assert await bench.plan(URL, URL) == 1

    async def test_a_url_is_one_endpoint_of_its_account(self, bench: StoreBench) -> None:
        mine = [(await _both(bench, made))[0] for made in await bench.deliveries_to(URL, 2)]
        (theirs,) = await bench.deliveries_to(URL, account="globex")
        other = await bench.store.delivery("globex", theirs)

        assert mine[0].endpoint_id == mine[1].endpoint_id
        assert mine[0].endpoint_id.startswith("ep_")
        assert other is not None
        assert other[0].endpoint_id != mine[0].endpoint_id


class DeliveryClaimContract:
    """Which deliveries are taken, and in whose turn."""

    async def test_a_claim_opens_an_attempt_on_record(self, bench: StoreBench) -> None:
        job = await bench.admit()
        (event,) = await bench.store.unplanned(10)
        await bench.plan(URL)
        bench.clock.advance(1.0)

        (claimed,) = await bench.take()

        assert (claimed.attempt, claimed.retries_spent, claimed.url) == (1, 0, URL)
        assert claimed.message == planned(event, URL).deliveries[0].message
        assert claimed.message.at == event.at
        delivery, attempts = await _both(bench, claimed.id)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.LEASED, 1)
        assert (delivery.job_id, delivery.next_attempt_at) == (job.id, None)
        assert attempts == [
            Attempt(
                attempt=1,
                started_at=bench.clock.now(),
                outcome=None,
                http_status=None,
                error=None,
                duration_ms=None,
                timings={},
                body_sha256=None,
                response_excerpt=b"",
            )
        ]

    async def test_rivals_never_share_a_delivery(self, bench: StoreBench) -> None:
        for number in range(5):
            await bench.deliveries_to(f"{URL}/{number}", 4)

        takes = await asyncio.gather(*(bench.take(3) for _ in range(10)))

        taken = [claimed.id for take in takes for claimed in take]
        assert len(taken) == len(set(taken)) == 20

    async def test_at_most_four_are_under_way_to_one_endpoint(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 6)

        first, second = await bench.take(3), await bench.take(10)
        assert (len(first), len(second)) == (3, IN_FLIGHT_MAX - 3)
        assert await bench.take(10) == []

        await _settle(bench, first[0], DELIVERED)
        assert len(await bench.take(10)) == 1

    async def test_a_backlog_at_one_endpoint_delays_nobody_else(self, bench: StoreBench) -> None:
        backlog = await bench.deliveries_to(URL, 30)
        bench.clock.advance(60.0)
        (newcomer,) = await bench.deliveries_to(OTHER_URL)

        taken = [claimed.id for claimed in await bench.take(2)]

        assert sorted(taken) == sorted([backlog[0], newcomer])

    async def test_endpoints_take_turns_even_at_one_delivery_at_a_time(self, bench: StoreBench) -> None:
        urls = [f"{URL}/{number}" for number in range(3)]
        for url in urls:
            await bench.deliveries_to(url, 4)

        served = []
        for _ in range(9):
            (claimed,) = await bench.take(1)
            served.append(claimed.url)
            await _settle(bench, claimed, DELIVERED)

        assert served == urls * 3

    async def test_all_get_their_first_before_any_gets_its_second(self, bench: StoreBench) -> None:
        for number in range(3):
            await bench.deliveries_to(f"{URL}/{number}", 4)
        (busy,) = await bench.take(1)

        taken = [claimed.url for claimed in await bench.take(5)]

        assert taken[:2] == [f"{URL}/1", f"{URL}/2"]
        assert sorted(taken[2:]) == sorted(f"{URL}/{number}" for number in range(3))
        assert busy.url == f"{URL}/0"

    async def test_a_held_endpoint_is_left_alone_and_only_that(self, bench: StoreBench) -> None:
        """Retry-After speaks for the whole endpoint, not for the one delivery it answered."""
        await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await _settle(bench, claimed, pending(delay_seconds=1.0, hold_seconds=30.0))
        await bench.deliveries_to(OTHER_URL)
        bench.clock.advance(29.999)

        assert [one.url for one in await bench.take(10)] == [OTHER_URL]
        bench.clock.advance(0.001)
        assert [one.url for one in await bench.take(10)] == [URL, URL]

    @pytest.mark.parametrize("ending", [DELIVERED, EXHAUSTED])
    async def test_a_last_answer_holds_its_endpoint_too(self, bench: StoreBench, ending: Next) -> None:
        await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await _settle(bench, claimed, replace(ending, hold_seconds=30.0))
        bench.clock.advance(29.999)

        assert await bench.take(10) == []
        bench.clock.advance(0.001)
        assert len(await bench.take(10)) == 1

    async def test_a_hold_is_never_shortened(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 2)
        first, second = await bench.take(2)
        await _settle(bench, first, pending(hold_seconds=30.0))
        await _settle(bench, second, pending(hold_seconds=5.0))
        bench.clock.advance(29.999)

        assert await bench.take(10) == []


class DeliveryOrderContract:
    """Deliveries of one job to one endpoint go in the order of its events."""

    async def test_a_later_event_waits_for_the_earlier_one(self, bench: StoreBench) -> None:
        started, completed = await _life_to(bench, URL)

        (first,) = await bench.take(10)
        under_way = await bench.take(10)
        await _settle(bench, first, pending(delay_seconds=5.0))
        bench.clock.advance(4.0)
        in_backoff = await bench.take(10)
        bench.clock.advance(1.0)
        (again,) = await bench.take(10)
        await _settle(bench, again, DELIVERED)
        (second,) = await bench.take(10)

        assert (first.message.id, again.message.id, second.message.id) == (started, started, completed)
        assert (under_way, in_backoff) == ([], [])

    async def test_a_dead_delivery_holds_up_nobody(self, bench: StoreBench) -> None:
        _, completed = await _life_to(bench, URL)
        (first,) = await bench.take(10)
        await _settle(bench, first, REFUSED)

        assert [claimed.message.id for claimed in await bench.take(10)] == [completed]

    async def test_other_jobs_and_other_endpoints_do_not_wait(self, bench: StoreBench) -> None:
        await _life_to(bench, URL, OTHER_URL)
        await bench.deliveries_to(URL)

        taken = await bench.take(10)

        assert sorted(claimed.url for claimed in taken) == [URL, URL, OTHER_URL]
        assert len({(claimed.url, claimed.message.job_id) for claimed in taken}) == 3


class DeliverySettleContract:
    """What an attempt came to."""

    async def test_an_outcome_closes_its_attempt(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        started_at = bench.clock.now()
        bench.clock.advance(0.5)

        async with bench.expect_ring(DELIVERIES):
            assert await _settle(bench, claimed, DELIVERED, http_status=204)

        delivery, attempts = await _both(bench, claimed.id)
        assert (delivery.status, delivery.reason) == (DeliveryStatus.DELIVERED, None)
        assert (delivery.finished_at, delivery.next_attempt_at) == (bench.clock.now(), None)
        assert attempts == [
            Attempt(
                attempt=1,
                started_at=started_at,
                outcome="retry",
                http_status=204,
                error=None,
                duration_ms=41,
                timings={"name_lookup": 0.001, "connect": 0.002, "total": 0.041},
                body_sha256="cd" * 32,
                response_excerpt=b"\x00busy \xff",
            )
        ]

    async def test_a_retry_comes_after_its_delay_and_spends_one(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await _settle(bench, claimed, pending(delay_seconds=2.5))
        delivery, _ = await _both(bench, claimed.id)

        bench.clock.advance(2.499)
        early = await bench.take()
        bench.clock.advance(0.001)
        (again,) = await bench.take()

        assert delivery.next_attempt_at == bench.clock.now()
        assert early == []
        assert (again.id, again.attempt, again.retries_spent) == (claimed.id, 2, 1)

    async def test_every_attempt_stays_on_record(self, bench: StoreBench) -> None:
        (made,) = await bench.deliveries_to(URL)
        for status in (500, 502, 503):
            (claimed,) = await bench.take()
            await _settle(bench, claimed, pending(), http_status=status)

        delivery, attempts = await _both(bench, made)
        assert delivery.attempts == 3
        assert [(one.attempt, one.http_status) for one in attempts] == [(1, 500), (2, 502), (3, 503)]

    async def test_the_dead_say_why_and_are_never_taken(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await _settle(bench, claimed, EXHAUSTED)
        bench.clock.advance(1000.0)

        delivery, _ = await _both(bench, claimed.id)
        assert (delivery.status, delivery.reason) == (DeliveryStatus.DEAD, EXHAUSTED.reason)
        assert delivery.finished_at == bench.clock.now() - timedelta(seconds=1000)
        assert await bench.take(10) == []

    async def test_a_lease_that_ran_out_makes_the_delivery_pending(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        bench.clock.advance(LEASE_SECONDS - 0.001)
        assert await bench.store.free_expired_deliveries() == 0
        bench.clock.advance(0.001)

        async with bench.expect_ring(DELIVERIES):
            assert await bench.store.free_expired_deliveries() == 1

        (again,) = await bench.take()
        _, attempts = await _both(bench, claimed.id)
        assert (again.id, again.attempt, again.retries_spent) == (claimed.id, 2, 0)
        assert [attempt.outcome for attempt in attempts] == [None, None]

    async def test_voiding_makes_all_leased_pending(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 3)
        taken = await bench.take(2)

        assert await bench.store.void_delivery_leases() == 2

        assert await bench.store.delivery_counts() == {"pending": 3}
        assert {claimed.id for claimed in taken} <= {claimed.id for claimed in await bench.take(10)}

    async def test_an_outcome_later_than_its_lease_is_taken_while_nobody_else_has_the_delivery(
        self, bench: StoreBench
    ) -> None:
        """The store was away for longer than the lease: what was delivered must not be sent again."""
        await bench.deliveries_to(URL)
        (late,) = await bench.take()
        bench.clock.advance(LEASE_SECONDS)
        assert await bench.store.free_expired_deliveries() == 1

        assert await _settle(bench, late, DELIVERED, http_status=204)

        delivery, attempts = await _both(bench, late.id)
        assert delivery.status is DeliveryStatus.DELIVERED
        assert [attempt.http_status for attempt in attempts] == [204]
        assert await bench.take(10) == []

    async def test_an_outcome_is_taken_once_though_the_delivery_is_pending_again(
        self, bench: StoreBench
    ) -> None:
        """Pending because it failed, or because a person re-drove it, is not pending because it was freed."""
        (made,) = await bench.deliveries_to(URL)
        (first,) = await bench.take()
        assert await _settle(bench, first, pending())
        assert not await _settle(bench, first, DELIVERED)
        (second,) = await bench.take()
        assert await _settle(bench, second, EXHAUSTED)
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(made,)), 0.0) == 1

        assert not await _settle(bench, second, EXHAUSTED)

        assert (await _both(bench, made))[0].status is DeliveryStatus.PENDING

    async def test_an_outcome_after_the_delivery_was_claimed_again_is_not_taken(
        self, bench: StoreBench
    ) -> None:
        await bench.deliveries_to(URL)
        (late,) = await bench.take()
        await bench.store.void_delivery_leases()

        (heir,) = await bench.take()
        assert not await _settle(bench, late, DELIVERED)
        assert not await _settle(bench, late, EXHAUSTED)
        assert await _settle(bench, heir, DELIVERED)
        assert not await _settle(bench, heir, EXHAUSTED)

        delivery, attempts = await _both(bench, late.id)
        assert delivery.status is DeliveryStatus.DELIVERED
        assert [attempt.outcome for attempt in attempts] == [None, "retry"]


async def _settle(
    bench: StoreBench, claimed: ClaimedDelivery, then: Next, http_status: int | None = 503
) -> bool:
    return await bench.store.settle_delivery(claimed, an_outcome(http_status=http_status), then)


async def _list(bench: StoreBench) -> list[Delivery]:
    return await bench.store.deliveries(
        ACCOUNT, status=None, job_id=None, endpoint_id=None, limit=100, before=None
    )


async def _both(bench: StoreBench, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
    found = await bench.store.delivery(ACCOUNT, delivery_id)
    assert found is not None
    return found


async def _life_to(bench: StoreBench, *urls: str) -> tuple[str, str]:
    """A job whose start and end are announced to `urls`; the ids of both events."""
    await bench.admit()
    await bench.plan()
    (claimed,) = await bench.claim()
    assert await bench.store.settle(claimed.lease, COMPLETED)
    started, completed = await bench.store.unplanned(10)
    await bench.plan(*urls)
    return started.id, completed.id
