"""Contract of `WebhookStore` for outcomes that come at once: written together, each as if it were alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, endpoint_of, settle, told, with_attempts
from tempa.testing.contracts.samples import DELIVERED, EXHAUSTED, an_outcome, pending
from tempa.webhooks.model import DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench


class OutcomesAtOnceContract:
    """Attempts that end at the same moment."""

    async def test_each_is_written_as_it_came_out(self, bench: StoreBench) -> None:
        made = [*await bench.deliveries_to(URL, 2), *await bench.deliveries_to(OTHER_URL, 2)]
        outcomes = dict(zip(made, (DELIVERED, pending(60.0), EXHAUSTED, DELIVERED), strict=True))

        assert all(
            await asyncio.gather(
                *(settle(bench, claimed, outcomes[claimed.id]) for claimed in await bench.take(10))
            )
        )

        for delivery_id, then in outcomes.items():
            delivery, attempts = await with_attempts(bench, delivery_id)
            assert (delivery.status, delivery.reason) == (then.status, then.reason)
            assert len(attempts) == 1
            assert attempts[0].outcome is not None

    async def test_each_is_fenced_by_itself(self, bench: StoreBench) -> None:
        lost, kept = await bench.deliveries_to(URL, 2)
        claimed = {one.id: one for one in await bench.take(10)}
        await settle(bench, claimed[lost], DELIVERED)

        answers = await asyncio.gather(*(settle(bench, claimed[one], EXHAUSTED) for one in (lost, kept)))

        assert answers == [False, True]
        assert (await with_attempts(bench, lost))[0].status is DeliveryStatus.DELIVERED
        assert (await with_attempts(bench, kept))[0].status is DeliveryStatus.DEAD

    async def test_the_same_one_twice_is_taken_once(self, bench: StoreBench) -> None:
        (made,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()

        answers = await asyncio.gather(*(settle(bench, claimed, EXHAUSTED) for _ in range(3)))

        assert answers == [True, False, False]
        assert len((await with_attempts(bench, made))[1]) == 1

    async def test_an_endpoint_learns_from_each_in_turn(self, bench: StoreBench) -> None:
        """Three failures park it, told once; a success among them begins the count anew."""
        down = await bench.deliveries_to(URL, 3)
        fine = await bench.deliveries_to(OTHER_URL, 4)
        claimed = {one.id: one for one in await bench.take(10)}
        outcomes = [pending(60.0)] * 5 + [DELIVERED, pending(60.0)]

        await asyncio.gather(
            *(
                settle(bench, claimed[delivery_id], then)
                for delivery_id, then in zip((*down, *fine), outcomes, strict=True)
            )
        )

        assert (await endpoint_of(bench, down[0])).parked_at is not None
        assert (await endpoint_of(bench, fine[0])).parked_at is None
        kinds = [kind for kind, _ in await told(bench)]
        assert kinds.count("endpoint.opened") == 1

    async def test_a_faulty_one_fails_alone(self, bench: StoreBench) -> None:
        faulty, fine = await bench.deliveries_to(URL, 2)
        claimed = {one.id: one for one in await bench.take(10)}
        nowhere = replace(an_outcome("delivered", 200), timings={"total": float("nan")})

        fault, settled = await asyncio.gather(
            bench.store.settle_delivery(claimed[faulty], nowhere, DELIVERED),
            bench.store.settle_delivery(claimed[fine], an_outcome("delivered", 200), DELIVERED),
            return_exceptions=True,
        )

        assert isinstance(fault, ValueError)
        assert settled is not None
        assert not isinstance(settled, BaseException)
        assert (await with_attempts(bench, fine))[0].status is DeliveryStatus.DELIVERED
        assert (await with_attempts(bench, faulty))[1][0].outcome is None
        with pytest.raises(ValueError, match="JSON"):
            await bench.store.settle_delivery(claimed[faulty], nowhere, DELIVERED)
        assert await settle(bench, claimed[faulty], DELIVERED)
