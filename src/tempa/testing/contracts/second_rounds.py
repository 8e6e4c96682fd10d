"""Contract of `WebhookStore` for what an outage has killed: healed whatever came between, and in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.testing.contracts.delivery_steps import URL, endpoint_of, life_to, settle, with_attempts
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, REFUSED, an_outcome, pending
from tempa.webhooks.model import DeadFilter, DeliveryStatus
from tempa.webhooks.views import what_next

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Next


class OwedContract:
    """What has died of an endpoint's failing is healed by its next success, whatever came between."""

    async def test_a_resume_does_not_forget_what_has_died(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        await _next_ends(bench, EXHAUSTED)
        await _resume(bench, dead)
        assert await bench.store.heal(10) == 0  # whether it answers is not known yet

        await _answers(bench)

        assert await bench.store.heal(10) == 1
        assert (await with_attempts(bench, dead))[0].status is DeliveryStatus.PENDING

    async def test_nor_does_410(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        await _next_ends(bench, EXHAUSTED)
        await bench.deliveries_to(URL)
        await _next_ends(bench, REFUSED, http_status=410)
        await _resume(bench, dead)
        await _answers(bench)

        assert await bench.store.heal(10) == 1

    async def test_what_a_fault_of_ours_has_exhausted_is_healed_too(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        slip = an_outcome(http_status=None, error="internal")
        for then in (pending(), EXHAUSTED):
            (claimed,) = await bench.take()
            assert await bench.store.settle_delivery(claimed, slip, then)
        await _answers(bench)

        assert await bench.store.heal(10) == 1
        assert (await with_attempts(bench, dead))[0].status is DeliveryStatus.PENDING

    async def test_it_is_healed_once_all_the_same(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        healed = []
        for _ in range(2):
            await _next_ends(bench, EXHAUSTED)
            await _resume(bench, dead)
            await _answers(bench)
            bench.clock.advance(1.0)
            healed.append(await bench.store.heal(10))

        assert healed == [1, 0]
        assert (await with_attempts(bench, dead))[0].status is DeliveryStatus.DEAD


class OvertakenContract:
    """A job's events come in order: what a later one has overtaken is not sent by itself any more."""

    async def test_what_was_overtaken_stays_dead_and_says_so(self, bench: StoreBench) -> None:
        started, completed = await _life(bench)
        await _next_ends(bench, EXHAUSTED)
        await _next_ends(bench, DELIVERED, http_status=200)

        assert await bench.store.heal(10) == 0

        delivery, _ = await with_attempts(bench, started)
        assert (await with_attempts(bench, completed))[0].status is DeliveryStatus.DELIVERED
        assert (delivery.status, delivery.heals) == (DeliveryStatus.DEAD, False)
        assert what_next(delivery).startswith("A later event of its job was delivered there")
        (group,) = await bench.store.dead_groups(ACCOUNT)
        assert (group.count, group.healable) == (1, 0)
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(started,)), 0.0) == 1

    async def test_what_still_waits_behind_it_waits_for_it_again(self, bench: StoreBench) -> None:
        """Both died; the earlier one is sent first."""
        started, completed = await _life(bench)
        await _next_ends(bench, EXHAUSTED)
        await _next_ends(bench, EXHAUSTED)
        await _answers(bench)
        assert await bench.store.heal(10) == 2

        order = []
        for _ in range(2):
            bench.clock.advance(1.0)
            (claimed,) = await bench.take(10)
            order.append(claimed.id)
            await settle(bench, claimed, DELIVERED, http_status=200)
        assert order == [started, completed]

    async def test_what_may_just_be_overtaken_waits_until_that_is_known(self, bench: StoreBench) -> None:
        started, completed = await _life(bench)
        await _next_ends(bench, EXHAUSTED)
        (under_way,) = await bench.take(10)
        assert under_way.id == completed
        await _answers(bench)

        assert await bench.store.heal(10) == 0
        await settle(bench, under_way, pending(60.0))
        assert await bench.store.heal(10) == 1
        assert (await with_attempts(bench, started))[0].status is DeliveryStatus.PENDING

    async def test_another_jobs_later_event_overtakes_nothing(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        await _next_ends(bench, EXHAUSTED)
        await _answers(bench)

        assert await bench.store.heal(10) == 1


async def _life(bench: StoreBench) -> tuple[str, str]:
    """The deliveries of a job's start and end, none tried yet."""
    await life_to(bench, URL)
    found = await bench.store.deliveries(
        ACCOUNT, status=None, job_id=None, endpoint_id=None, limit=2, before=None
    )
    completed, started = found
    assert [one.type.partition(".")[2] for one in (started, completed)] == ["started", "completed"]
    return started.id, completed.id


async def _next_ends(bench: StoreBench, then: Next, http_status: int = 503) -> None:
    (claimed,) = await bench.take(1)
    assert await settle(bench, claimed, then, http_status=http_status)


async def _resume(bench: StoreBench, delivery_id: str) -> None:
    endpoint = await endpoint_of(bench, delivery_id)
    assert await bench.store.resume_endpoint(ACCOUNT, endpoint.id)


async def _answers(bench: StoreBench) -> None:
    """The endpoint takes another job's delivery."""
    (made,) = await bench.deliveries_to(URL)
    (claimed,) = [one for one in await bench.take(10) if one.id == made]
    assert await settle(bench, claimed, DELIVERED, http_status=200)
