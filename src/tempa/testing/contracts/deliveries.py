"""Contract of `WebhookStore` for attempts: made in order, each outcome taken once, all on record."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.work import DELIVERIES
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, life_to, settle, with_attempts
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, LEASE_SECONDS, REFUSED, pending
from tempa.webhooks.model import Attempt, DeadFilter, DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class DeliveryOrderContract:
    """Deliveries of one job to one endpoint go in the order of its events."""

    async def test_a_later_event_waits_for_the_earlier_one(self, bench: StoreBench) -> None:
        started, completed = await life_to(bench, URL)

        (first,) = await bench.take(10)
        under_way = await bench.take(10)
        await settle(bench, first, pending(delay_seconds=5.0))
        bench.clock.advance(4.0)
        in_backoff = await bench.take(10)
        bench.clock.advance(1.0)
        (again,) = await bench.take(10)
        await settle(bench, again, DELIVERED)
        (second,) = await bench.take(10)

        assert (first.message.id, again.message.id, second.message.id) == (started, started, completed)
        assert (under_way, in_backoff) == ([], [])

    async def test_a_dead_delivery_holds_up_nobody(self, bench: StoreBench) -> None:
        _, completed = await life_to(bench, URL)
        (first,) = await bench.take(10)
        await settle(bench, first, REFUSED)

        assert [claimed.message.id for claimed in await bench.take(10)] == [completed]

    async def test_other_jobs_and_other_endpoints_do_not_wait(self, bench: StoreBench) -> None:
        await life_to(bench, URL, OTHER_URL)
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
            assert await settle(bench, claimed, DELIVERED, http_status=204)

        delivery, attempts = await with_attempts(bench, claimed.id)
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
                hint="redirects_to /é",
            )
        ]

    async def test_a_retry_comes_after_its_delay_and_spends_one(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, pending(delay_seconds=2.5))
        delivery, _ = await with_attempts(bench, claimed.id)

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
            await settle(bench, claimed, pending(), http_status=status)

        delivery, attempts = await with_attempts(bench, made)
        assert delivery.attempts == 3
        assert [(one.attempt, one.http_status) for one in attempts] == [(1, 500), (2, 502), (3, 503)]

    async def test_the_dead_say_why_and_are_never_taken(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, EXHAUSTED)
        bench.clock.advance(1000.0)

        delivery, _ = await with_attempts(bench, claimed.id)
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
        _, attempts = await with_attempts(bench, claimed.id)
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

        assert await settle(bench, late, DELIVERED, http_status=204)

        delivery, attempts = await with_attempts(bench, late.id)
        assert delivery.status is DeliveryStatus.DELIVERED
        assert [attempt.http_status for attempt in attempts] == [204]
        assert await bench.take(10) == []

    async def test_an_outcome_is_taken_once_though_the_delivery_is_pending_again(
        self, bench: StoreBench
    ) -> None:
        """Pending because it failed, or because a person re-drove it, is not pending because it was freed."""
        (made,) = await bench.deliveries_to(URL)
        (first,) = await bench.take()
        assert await settle(bench, first, pending())
        assert not await settle(bench, first, DELIVERED)
        (second,) = await bench.take()
        assert await settle(bench, second, EXHAUSTED)
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(made,)), 0.0) == 1

        assert not await settle(bench, second, EXHAUSTED)

        assert (await with_attempts(bench, made))[0].status is DeliveryStatus.PENDING

    async def test_an_outcome_after_the_delivery_was_claimed_again_is_not_taken(
        self, bench: StoreBench
    ) -> None:
        await bench.deliveries_to(URL)
        (late,) = await bench.take()
        await bench.store.void_delivery_leases()

        (heir,) = await bench.take()
        assert not await settle(bench, late, DELIVERED)
        assert not await settle(bench, late, EXHAUSTED)
        assert await settle(bench, heir, DELIVERED)
        assert not await settle(bench, heir, EXHAUSTED)

        delivery, attempts = await with_attempts(bench, late.id)
        assert delivery.status is DeliveryStatus.DELIVERED
        assert [attempt.outcome for attempt in attempts] == [None, "retry"]
