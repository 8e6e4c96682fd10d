"""Contract of `WebhookStore` for after an outage: healed once, or given up; and what is told of it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.work import DELIVERIES, EVENTS
from tempa.testing.contracts.delivery_steps import (
    OTHER_URL,
    URL,
    bring_back,
    endpoint_of,
    settle,
    take_down,
    told,
    with_attempts,
)
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, REFUSED, pending
from tempa.webhooks.model import DeadReason, DeliveryStatus
from tempa.webhooks.room import host_of

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import ClaimedDelivery

HOST = host_of(URL)
PARKED_SECONDS = 72 * 3600.0


class HealContract:
    """What died of an outage is sent once more when that is over."""

    async def test_what_was_exhausted_goes_out_once_more_when_its_endpoint_answers(
        self, bench: StoreBench
    ) -> None:
        dead = await _die(bench, 3)
        assert await bench.store.heal(10) == 0  # it does not answer yet
        await bring_back_with_another(bench)

        async with bench.expect_ring(DELIVERIES):
            assert await bench.store.heal(10) == 3

        for delivery_id in dead:
            delivery, _ = await with_attempts(bench, delivery_id)
            assert (delivery.status, delivery.reason) == (DeliveryStatus.PENDING, None)
            assert (delivery.healed, delivery.finished_at) == (True, None)
        assert await bench.store.heal(10) == 0

    async def test_it_has_its_retries_back_and_its_attempts_go_on(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        for then in (pending(), EXHAUSTED):
            (claimed,) = await bench.take()
            await settle(bench, claimed, then)
        await _deliver_one(bench)
        assert await bench.store.heal(10) == 1

        (again,) = await bench.take(10)
        assert (again.id, again.attempt, again.retries_spent) == (dead, 3, 0)

    async def test_healing_is_paced(self, bench: StoreBench) -> None:
        await _die(bench, 4)
        await bring_back_with_another(bench)
        await bench.store.heal(10)

        assert len(await bench.take(10)) == 1
        bench.clock.advance(0.2)
        assert len(await bench.take(10)) == 1

    async def test_it_is_healed_once_only(self, bench: StoreBench) -> None:
        (dead,) = await _die(bench, 1)
        await _deliver_one(bench)
        assert await bench.store.heal(10) == 1
        (again,) = await bench.take(10)
        assert again.id == dead
        await settle(bench, again, EXHAUSTED)
        bench.clock.advance(1.0)
        await _deliver_one(bench)

        assert await bench.store.heal(10) == 0
        delivery, _ = await with_attempts(bench, dead)
        assert (delivery.status, delivery.heals) == (DeliveryStatus.DEAD, False)

    async def test_a_final_refusal_is_never_healed(self, bench: StoreBench) -> None:
        (refused,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED, http_status=404)
        await _die(bench, 1)
        await _deliver_one(bench)

        assert await bench.store.heal(10) == 1
        assert await bench.store.heal(10) == 0
        assert (await with_attempts(bench, refused))[0].status is DeliveryStatus.DEAD

    async def test_only_the_endpoint_that_answers_is_healed(self, bench: StoreBench) -> None:
        (here,) = await _die(bench, 1)
        (there,) = await _die(bench, 1, OTHER_URL)
        await _deliver_one(bench)

        assert await bench.store.heal(10) == 1
        assert (await with_attempts(bench, here))[0].status is DeliveryStatus.PENDING
        assert (await with_attempts(bench, there))[0].status is DeliveryStatus.DEAD

    async def test_it_goes_in_slices_the_oldest_first(self, bench: StoreBench) -> None:
        dead = await _die(bench, 4)
        await bring_back_with_another(bench)

        assert await bench.store.heal(3) == 3
        states = [(await with_attempts(bench, one))[0].status for one in dead]
        assert states == [DeliveryStatus.PENDING] * 3 + [DeliveryStatus.DEAD]
        assert await bench.store.heal(3) == 1

    async def test_rivals_heal_each_letter_once(self, bench: StoreBench) -> None:
        await _die(bench, 4)
        await bring_back_with_another(bench)

        healed = [await bench.store.heal(3), await bench.store.heal(3), await bench.store.heal(3)]
        assert sum(healed) == 4

    async def test_one_that_fails_again_waits_until_it_answers_again(self, bench: StoreBench) -> None:
        await _die(bench, 2)
        await bring_back_with_another(bench)
        await take_down_as_it_recovers(bench)

        assert await bench.store.heal(10) == 0
        await bring_back(bench)
        assert await bench.store.heal(10) == 2

    async def test_groups_say_which_of_them_heal(self, bench: StoreBench) -> None:
        (once,) = await _die(bench, 1)
        await _deliver_one(bench)
        await bench.store.heal(10)
        (again,) = await bench.take()
        assert again.id == once
        await settle(bench, again, EXHAUSTED)
        await _die(bench, 1)

        (group,) = await bench.store.dead_groups(ACCOUNT)
        assert (group.reason, group.count, group.healable, group.spent) == (DeadReason.EXHAUSTED, 2, 1, 0)


class ExpireContract:
    """What is parked for too long ends in the dead letters."""

    async def test_what_was_parked_for_too_long_is_dead(self, bench: StoreBench) -> None:
        made = await take_down(bench, count=5)
        bench.clock.advance(PARKED_SECONDS - 0.001)
        assert await bench.store.expire_parked(PARKED_SECONDS, 10) == 0
        bench.clock.advance(0.001)
        (young,) = await bench.deliveries_to(URL)
        await told(bench)

        async with bench.expect_ring(EVENTS):
            assert await bench.store.expire_parked(PARKED_SECONDS, 3) == 3
        assert await bench.store.expire_parked(PARKED_SECONDS, 3) == 2
        assert await bench.store.expire_parked(PARKED_SECONDS, 3) == 0

        for delivery_id in made:
            delivery, _ = await with_attempts(bench, delivery_id)
            assert (delivery.status, delivery.reason) == (DeliveryStatus.DEAD, DeadReason.ENDPOINT_DOWN)
            assert delivery.finished_at == bench.clock.now()
        assert (await with_attempts(bench, young))[0].status is DeliveryStatus.PARKED
        deaths = [data["delivery_id"] for kind, data in await told(bench) if kind == "delivery.dead"]
        assert sorted(deaths) == sorted(made)

    async def test_what_is_due_later_than_that_is_not_yet_late(self, bench: StoreBench) -> None:
        await take_down(bench)
        bench.clock.advance(PARKED_SECONDS - 3600)
        (probe,) = await bench.take(10)
        await settle(bench, probe, pending())
        bench.clock.advance(3600)

        assert await bench.store.expire_parked(PARKED_SECONDS, 10) == 2
        assert (await with_attempts(bench, probe.id))[0].status is DeliveryStatus.PARKED

    async def test_it_is_sent_once_more_when_its_endpoint_answers_again(self, bench: StoreBench) -> None:
        made = await take_down(bench)
        bench.clock.advance(PARKED_SECONDS)
        await bench.store.expire_parked(PARKED_SECONDS, 10)
        await bench.deliveries_to(URL)
        await bring_back(bench)

        assert await bench.store.heal(10) == 3
        assert {(await with_attempts(bench, one))[0].status for one in made} == {DeliveryStatus.PENDING}

    async def test_what_its_owner_paused_waits_for_its_owner(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        await bench.store.pause_endpoint(ACCOUNT, endpoint.id)
        bench.clock.advance(10 * PARKED_SECONDS)

        assert await bench.store.expire_parked(PARKED_SECONDS, 10) == 0
        assert await bench.store.delivery_counts() == {"parked": 1}

    async def test_what_waits_for_a_disabled_one_is_given_up_and_healed_when_that_is_resumed(
        self, bench: StoreBench
    ) -> None:
        await bench.deliveries_to(URL, 3)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED, http_status=410)
        bench.clock.advance(PARKED_SECONDS)
        assert await bench.store.expire_parked(PARKED_SECONDS, 10) == 2

        endpoint = await endpoint_of(bench, claimed.id)
        await bench.store.resume_endpoint(ACCOUNT, endpoint.id)

        assert await bench.store.heal(10) == 2

    async def test_what_is_not_parked_never_expires(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        bench.clock.advance(10 * PARKED_SECONDS)

        assert await bench.store.expire_parked(PARKED_SECONDS, 10) == 0


class NoticeContract:
    """What an account is told of its own webhooks, each once and in the transaction that it tells of."""

    async def test_a_life_with_an_outage_is_told_once_each(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 4)
        assert await told(bench) == []
        for claimed in await bench.take(3):
            async with bench.expect_ring(DELIVERIES):
                await settle(bench, claimed, pending())
        opened = await told(bench)
        await bring_back(bench)
        recovered = await told(bench)

        endpoint = await endpoint_of(bench, made[0])
        assert [kind for kind, _ in opened] == ["endpoint.failing", "endpoint.opened"]
        assert [kind for kind, _ in recovered] == ["endpoint.recovered"]
        assert {data["endpoint_id"] for _, data in (*opened, *recovered)} == {endpoint.id}
        assert {data["host"] for _, data in (*opened, *recovered)} == {HOST}
        assert not [data for _, data in (*opened, *recovered) if URL in str(data)]
        assert [data["failures"] for _, data in (*opened, *recovered)] == [1, 3, 3]
        assert [data["http_status"] for _, data in opened] == [503, 503]
        assert opened[0][1]["parked_since"] is None
        assert opened[1][1]["parked_since"] == recovered[0][1]["parked_since"] is not None

    async def test_a_failure_and_a_success_are_told_and_nothing_while_all_is_well(
        self, bench: StoreBench
    ) -> None:
        await bench.deliveries_to(URL, 3)
        kinds = []
        for then in (DELIVERED, pending(60.0), DELIVERED):
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, then)
            kinds.append([kind for kind, _ in await told(bench)])

        assert kinds == [[], ["endpoint.failing"], ["endpoint.recovered"]]

    async def test_a_death_is_told_with_what_comes_next(self, bench: StoreBench) -> None:
        (dead,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()

        async with bench.expect_ring(EVENTS):
            await settle(bench, claimed, REFUSED, http_status=404)

        delivery, _ = await with_attempts(bench, dead)
        ((kind, data),) = await told(bench)
        assert kind == "delivery.dead"
        assert data == {
            "delivery_id": dead,
            "event_id": delivery.event_id,
            "type": delivery.type,
            "job_id": delivery.job_id,
            "endpoint_id": delivery.endpoint_id,
            "host": HOST,
            "reason": "refused",
            "attempts": 1,
            "what_next": "The receiver refused it for good. Mend the receiver, then re-drive.",
        }

    async def test_an_outcome_that_is_not_taken_tells_nothing(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED)
        await told(bench)

        assert not await settle(bench, claimed, REFUSED)

        assert await told(bench) == []

    async def test_they_stand_in_the_feed(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED)
        await bench.plan()

        last = (await bench.store.feed(ACCOUNT, 0, 100))[-1]
        assert (last.type, last.job_id, last.sequence) == ("delivery.dead", None, None)


async def _die(bench: StoreBench, count: int, url: str = URL) -> list[str]:
    """`count` deliveries that are exhausted at once."""
    made = await bench.deliveries_to(url, count)
    bench.clock.advance(1.0)  # should a pace be kept
    while taken := [claimed for claimed in await bench.take(10) if claimed.url == url]:
        for claimed in taken:
            await settle(bench, claimed, EXHAUSTED)
        if (await bench.store.delivery_counts()).get("parked"):
            bench.clock.advance(60.0)
    return made


async def _deliver_one(bench: StoreBench, url: str = URL) -> ClaimedDelivery:
    """A delivery that is taken: the endpoint answers."""
    (made,) = await bench.deliveries_to(url)
    (claimed,) = [one for one in await bench.take(10) if one.id == made]
    await settle(bench, claimed, DELIVERED, http_status=200)
    return claimed


async def bring_back_with_another(bench: StoreBench) -> None:
    """The endpoint answers again, to a delivery that is not dead; then its pace has let the next go."""
    await bench.deliveries_to(URL)
    bench.clock.advance(60.0)
    (claimed,) = await bench.take(10)
    await settle(bench, claimed, DELIVERED, http_status=200)
    bench.clock.advance(0.2)


async def take_down_as_it_recovers(bench: StoreBench) -> None:
    """Three more that fail, at the pace of its recovery."""
    await bench.deliveries_to(URL, 3)
    for _ in range(3):
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, pending(delay_seconds=5.0))
        bench.clock.advance(1.0)
    counts = await bench.store.delivery_counts()
    assert counts["parked"] == 3
