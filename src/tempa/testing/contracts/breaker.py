"""Contract of `WebhookStore` for endpoints that are down: deliveries are parked, and one at a time probes.

The throw of the dice is 0.5 everywhere: probes are due after 1, 2, 4, 8 … seconds, at most 30.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.testing.contracts.bench import ROOMY
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
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, LEASE_SECONDS, REFUSED, pending
from tempa.webhooks.model import DeadFilter, DeliveryStatus, EndpointStatus
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Delivery


class BreakerContract:
    """When deliveries are parked, and when they are not."""

    async def test_three_different_deliveries_that_fail_in_a_row_park_all_of_them(
        self, bench: StoreBench
    ) -> None:
        made = await take_down(bench, count=5)

        assert {one.id for one in await listed(bench, DeliveryStatus.PARKED)} == set(made)
        assert await listed(bench, DeliveryStatus.PENDING) == []
        assert await bench.store.delivery_counts() == {"parked": 5}
        assert await bench.store.parked_endpoints() == {"open": 1}
        untried, attempts = await with_attempts(bench, made[4])
        assert (untried.status, untried.next_attempt_at) == (DeliveryStatus.PARKED, None)
        assert (untried.attempts, attempts) == (0, [])
        assert (await endpoint_of(bench, made[0])).parked_at == bench.clock.now()

    async def test_one_delivery_that_fails_again_and_again_parks_nothing(self, bench: StoreBench) -> None:
        (poison,) = await bench.deliveries_to(URL)
        for _ in range(5):
            (claimed,) = await bench.take()
            await settle(bench, claimed, pending())
        (claimed,) = await bench.take()
        await settle(bench, claimed, EXHAUSTED)
        await bench.deliveries_to(URL)

        assert (await endpoint_of(bench, poison)).parked_at is None
        assert await bench.store.delivery_counts() == {"pending": 1, "dead": 1}
        assert len(await bench.take(10)) == 1

    async def test_a_success_in_between_begins_the_count_anew(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 5)
        for then in (pending(60), pending(60), DELIVERED, pending(60), pending(60)):
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, then)

        assert await bench.store.delivery_counts() == {"pending": 4}

    async def test_final_refusals_park_nothing(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 4)
        for claimed in await bench.take(4):
            await settle(bench, claimed, REFUSED, http_status=404)

        assert await bench.store.parked_endpoints() == {}

    async def test_only_the_endpoint_that_failed_is_parked(self, bench: StoreBench) -> None:
        await take_down(bench)
        await bench.deliveries_to(OTHER_URL)

        assert [claimed.url for claimed in await bench.take(10)] == [OTHER_URL]

    async def test_what_comes_while_it_is_down_is_parked_too(self, bench: StoreBench) -> None:
        await take_down(bench)
        (late,) = await bench.deliveries_to(URL)

        assert (await with_attempts(bench, late))[0].status is DeliveryStatus.PARKED
        assert await bench.take(10) == []


class ProbeContract:
    """How a parked endpoint is asked whether it is back."""

    async def test_one_at_a_time_probes_the_oldest_that_is_due(self, bench: StoreBench) -> None:
        made = await take_down(bench, count=6)
        assert await _seconds_to_next(bench) == 1.0
        bench.clock.advance(0.999)
        assert await bench.take(10) == []
        bench.clock.advance(0.001)

        takes = await asyncio.gather(*(bench.take(10) for _ in range(5)))

        (probe,) = [claimed for take in takes for claimed in take]
        assert probe.id == made[0]
        bench.clock.advance(20.0)
        assert await bench.take(10) == []  # while it is under way

    async def test_a_probe_spends_its_attempt_and_no_other_delivery_does(self, bench: StoreBench) -> None:
        made = await take_down(bench, count=5)
        for _ in range(3):
            bench.clock.advance(60.0)
            (probe,) = await bench.take(10)
            assert await settle(bench, probe, pending(delay_seconds=2.0))

        spent = [(await with_attempts(bench, one))[0].attempts for one in made]
        assert sum(spent) == 3 + 3  # what opened it, and the probes
        assert max(spent) == 2

    async def test_each_that_fails_makes_the_next_wait_longer(self, bench: StoreBench) -> None:
        await take_down(bench, count=12)
        waits = []
        for _ in range(7):
            waits.append(await _seconds_to_next(bench))
            bench.clock.advance(waits[-1])
            (probe,) = await bench.take(10)
            await settle(bench, probe, pending(delay_seconds=300.0))

        assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]

    async def test_a_final_refusal_says_that_it_is_not_back(self, bench: StoreBench) -> None:
        await take_down(bench)
        bench.clock.advance(1.0)
        (probe,) = await bench.take(10)
        await settle(bench, probe, REFUSED, http_status=404)

        assert await bench.take(10) == []
        assert await bench.store.delivery_counts() == {"parked": 2, "dead": 1}

    async def test_what_was_under_way_when_it_was_parked_is_no_probe(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 6)
        under_way = await bench.take(4)
        bench.clock.advance(0.1)
        for claimed in under_way[:3]:
            await settle(bench, claimed, pending())
        bench.clock.advance(0.5)
        await settle(bench, under_way[3], pending())

        bench.clock.advance(0.5)
        assert len(await bench.take(10)) == 1
        health = (await endpoint_of(bench, under_way[0].id)).health
        assert health is not None
        assert health["failed_probes"] == 0

    async def test_the_first_that_is_taken_frees_all(self, bench: StoreBench) -> None:
        made = await take_down(bench, count=6)
        await bring_back(bench)

        assert await bench.store.delivery_counts() == {"pending": 5}
        assert (await endpoint_of(bench, made[0])).parked_at is None
        assert len(await bench.take(10)) == 1  # at 5/s to begin with
        bench.clock.advance(0.2)
        assert len(await bench.take(10)) == 1

    async def test_a_probe_whose_lease_ran_out_is_followed_by_another(self, bench: StoreBench) -> None:
        await take_down(bench)
        bench.clock.advance(1.0)
        (lost,) = await bench.take(10)
        bench.let_lapse()
        await bench.store.free_expired_deliveries()

        (again,) = await bench.take(10)
        assert (again.id, again.attempt) == (lost.id, lost.attempt + 1)

    async def test_retry_after_holds_a_parked_endpoint_too(self, bench: StoreBench) -> None:
        await take_down(bench)
        bench.clock.advance(1.0)
        (probe,) = await bench.take(10)
        await settle(bench, probe, pending(hold_seconds=120.0))
        bench.clock.advance(119.999)

        assert await bench.take(10) == []
        bench.clock.advance(0.001)
        assert len(await bench.take(10)) == 1

    async def test_a_letter_that_is_redriven_there_is_parked_not_lost(self, bench: StoreBench) -> None:
        (letter,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED, http_status=404)
        await take_down(bench)

        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(letter,)), 0.0) == 1

        assert (await with_attempts(bench, letter))[0].status is DeliveryStatus.PARKED
        assert await bench.take(10) == []
        await bring_back(bench)
        assert (await with_attempts(bench, letter))[0].status is not DeliveryStatus.PARKED


class GoneContract:
    """A receiver that answers 410 wants nothing any more."""

    async def test_410_disables_and_what_waits_is_parked(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 4)
        (claimed,) = await bench.take()
        await settle(bench, claimed, REFUSED, http_status=410)

        endpoint = await endpoint_of(bench, made[0])
        assert (endpoint.status, endpoint.parked_at) == (EndpointStatus.DISABLED, bench.clock.now())
        assert await bench.store.delivery_counts() == {"parked": 3, "dead": 1}
        assert await bench.store.parked_endpoints() == {"disabled": 1}
        bench.clock.advance(timedelta(days=2).total_seconds())
        assert await bench.take(10) == []  # nothing probes

    async def test_it_is_told_once_though_several_were_answered_so(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 4)
        for claimed in await bench.take(4):
            await settle(bench, claimed, REFUSED, http_status=410)

        kinds = [kind for kind, _ in await told(bench)]
        assert kinds.count("endpoint.disabled") == 1
        assert kinds.count("delivery.dead") == 4

    async def test_another_404_disables_nothing(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, REFUSED, http_status=404)

        assert (await endpoint_of(bench, made[0])).status is EndpointStatus.ACTIVE
        assert len(await bench.take(10)) == 1


async def listed(bench: StoreBench, status: DeliveryStatus) -> list[Delivery]:
    """Deliveries in this status."""
    narrow: dict[str, Any] = {"job_id": None, "endpoint_id": None, "limit": 100, "before": None}
    return await bench.store.deliveries(ACCOUNT, status=status, **narrow)


async def _seconds_to_next(bench: StoreBench) -> float:
    """What a claim that gets nothing says."""
    claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
    assert claim.taken == ()
    assert claim.next_seconds is not None
    return claim.next_seconds
