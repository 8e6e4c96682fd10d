"""Contract of `WebhookStore` for time: every claim says when the next delivery is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.testing.contracts.bench import ROOMY
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, life_to, settle
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, LEASE_SECONDS, REFUSED, pending
from tempa.webhooks.model import DeadFilter
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class DeliveryDueContract:
    """What a deliverer sleeps by. What is due but not taken is no reason to wake: what frees it rings."""

    async def test_where_nothing_waits_nothing_is_next(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)

        assert await _claim(bench) == (1, None)
        assert await _claim(bench) == (0, None)

    async def test_the_first_retry_of_all_is_next(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 2)
        await bench.deliveries_to(OTHER_URL)
        for claimed, seconds in zip(await bench.take(3), (9.0, 2.5, 4.0), strict=True):
            await settle(bench, claimed, pending(delay_seconds=seconds))
        bench.clock.advance(1.0)

        assert await _claim(bench) == (0, 1.5)
        bench.clock.advance(1.499)
        assert await _claim(bench) == (0, 0.001)
        bench.clock.advance(0.001)
        assert await _claim(bench) == (1, 1.5)
        bench.clock.advance(1.5)
        assert await _claim(bench) == (1, 5.0)

    async def test_a_hold_is_waited_for_to_its_end(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, pending(delay_seconds=31.0, hold_seconds=30.0))

        assert await _claim(bench) == (0, 30.0)
        bench.clock.advance(30.0)
        assert await _claim(bench) == (1, 1.0)

    async def test_a_new_delivery_does_not_end_a_hold(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, pending(hold_seconds=30.0))
        await bench.deliveries_to(URL)

        assert await _claim(bench) == (0, 30.0)

    async def test_what_waits_for_a_place_at_its_endpoint_is_not_next(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 6)
        taken = await bench.take(10)

        assert await _claim(bench) == (0, None)
        await settle(bench, taken[0], DELIVERED)
        assert await _claim(bench) == (1, None)

    async def test_what_waits_for_an_earlier_event_is_due_with_that(self, bench: StoreBench) -> None:
        await life_to(bench, URL)
        (first,) = await bench.take(10)
        await settle(bench, first, pending(delay_seconds=5.0))

        assert await _claim(bench) == (0, 5.0)

    async def test_redriven_letters_come_due_one_by_one(self, bench: StoreBench) -> None:
        made = [*await bench.deliveries_to(URL, 3), *await bench.deliveries_to(OTHER_URL, 3)]
        for claimed in await bench.take(10):
            await settle(bench, claimed, REFUSED)
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=tuple(made)), 0.25) == 6

        served = []
        for _ in made:
            claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
            assert claim.next_seconds in (0.25, None)
            served += [claimed.id for claimed in claim.taken]
            bench.clock.advance(0.25)

        assert served == made

    async def test_a_letter_that_is_redriven_holds_up_what_comes_after_it(self, bench: StoreBench) -> None:
        started, completed = await life_to(bench, URL)
        (first,) = await bench.take(10)
        await settle(bench, first, EXHAUSTED)
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=(first.id,)), 0.0) == 1

        (again,) = await bench.take(10)
        await settle(bench, again, DELIVERED)
        (second,) = await bench.take(10)

        assert (again.message.id, second.message.id) == (started, completed)


async def _claim(bench: StoreBench) -> tuple[int, float | None]:
    """How many one claim took, and how long the next one may wait."""
    claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
    return len(claim.taken), claim.next_seconds
