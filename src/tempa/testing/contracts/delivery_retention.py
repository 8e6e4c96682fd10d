"""Contract of `WebhookStore` for retention: the payload goes first, then the record of what is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.testing.contracts.delivery_steps import URL, settle, with_attempts
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, DAY_SECONDS, DELIVERED, EXHAUSTED, REFUSED, pending
from tempa.webhooks.model import DeadFilter, DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class PayloadContract:
    """What was sent and answered."""

    async def test_only_that_of_the_finished_goes(self, bench: StoreBench) -> None:
        delivered, dead, waiting = await bench.deliveries_to(URL, 3)
        for then in (DELIVERED, REFUSED, pending()):
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, then)
        bench.clock.advance(DAY_SECONDS)

        assert await bench.store.prune_payloads(bench.clock.now(), 1) == 1
        assert await bench.store.prune_payloads(bench.clock.now(), 10) == 1
        assert await bench.store.prune_payloads(bench.clock.now(), 10) == 0

        for delivery_id, spent in ((delivered, True), (dead, True), (waiting, False)):
            delivery, (attempt,) = await with_attempts(bench, delivery_id)
            assert delivery.is_spent is spent
            assert (attempt.response_excerpt == b"") is spent
            assert (attempt.http_status, attempt.body_sha256) == (503, "cd" * 32)
        (claimed,) = await bench.take(10)
        assert claimed.id == waiting
        assert claimed.message.data["tags"] == {"order": "A-17"}

    async def test_what_finished_later_keeps_it(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, DELIVERED)

        assert await bench.store.prune_payloads(bench.clock.now(), 10) == 0

    async def test_a_letter_without_it_is_counted_and_left_alone(self, bench: StoreBench) -> None:
        old, young = await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, REFUSED)
        bench.clock.advance(DAY_SECONDS)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, REFUSED)
        await bench.store.prune_payloads(bench.clock.now(), 10)
        which = DeadFilter(delivery_ids=(old, young))

        assert await bench.store.count_dead(ACCOUNT, which) == 2
        assert await bench.store.count_spent(ACCOUNT, which) == 1
        assert await bench.store.redrive(ACCOUNT, which, 0.0) == 1
        assert (await with_attempts(bench, old))[0].status is DeliveryStatus.DEAD
        assert (await with_attempts(bench, young))[0].status is DeliveryStatus.PENDING
        (group,) = await bench.store.dead_groups(ACCOUNT)
        assert (group.count, group.spent, group.healable) == (1, 1, 0)

    async def test_a_letter_without_it_does_not_heal(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, EXHAUSTED)
        bench.clock.advance(1.0)
        await bench.store.prune_payloads(bench.clock.now(), 10)
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, DELIVERED)

        assert await bench.store.heal(10) == 0

    async def test_letters_of_a_removed_endpoint_are_never_sent_again(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED)
        await bench.store.remove_endpoint(ACCOUNT, endpoint.id)
        which = DeadFilter(delivery_ids=(claimed.id,))

        assert await bench.store.count_spent(ACCOUNT, which) == 1
        assert await bench.store.redrive(ACCOUNT, which, 0.0) == 0


class NoticeRetentionContract:
    """Events about no job."""

    async def test_they_go_once_no_delivery_tells_of_them(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await bench.deliveries_to(URL, 2)
        for is_told in (False, True):
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, REFUSED)
            await (plan_to(bench, endpoint) if is_told else bench.plan())
        bench.clock.advance(DAY_SECONDS)
        now = bench.clock.now()

        assert await bench.store.prune_notices(now, 10) == 1  # the other is on its way
        (claimed,) = await bench.take()
        await settle(bench, claimed, DELIVERED)
        assert await bench.store.prune_notices(now, 10) == 0
        bench.clock.advance(1.0)
        assert await bench.store.prune_deliveries(bench.clock.now(), 10) == 3
        assert await bench.store.prune_notices(now, 10) == 1

    async def test_those_that_were_not_fanned_out_stay(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED)
        bench.clock.advance(DAY_SECONDS)

        assert await bench.store.prune_notices(bench.clock.now(), 10) == 0
        assert [event.type for event in await bench.store.unplanned(10)] == ["delivery.dead"]

    async def test_events_of_jobs_stay_with_their_jobs(self, bench: StoreBench) -> None:
        job = await bench.admit()
        await bench.plan()
        bench.clock.advance(DAY_SECONDS)

        assert await bench.store.prune_notices(bench.clock.now(), 10) == 0
        assert len(await bench.log(job)) == 1
