"""Contract of rentals: one renter at a time, warned before the end, with grace behind it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.core.work import EVENTS
from tempa.settlement.events import EXPIRED, EXPIRING
from tempa.settlement.model import InstanceStatus, QuoteStatus
from tempa.settlement.rentals import Expired
from tempa.testing.contracts.samples import ACCOUNT, OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import (
    HOUR,
    a_quote,
    an_instance,
    pay,
    the_instance,
    the_quote,
    told,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench

WARN, GRACE = 300.0, 600.0


async def status(bench: StoreBench, gpu: str) -> InstanceStatus:
    """Of an instance, now."""
    return (await the_instance(bench, gpu)).status(bench.clock.now())


class OneRenterContract:
    """Whoever's payment is posted first has it, and nobody else until the grace is over."""

    async def test_an_instance_is_there_to_be_rented(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)

        shown = await the_instance(bench, gpu)

        assert (shown.name, shown.prices, shown.renter) == ("H200 Nº 7", (HOUR,), None)
        assert await status(bench, gpu) is InstanceStatus.AVAILABLE
        assert await bench.store.instance(new_id("gpu")) is None

    async def test_instances_are_listed_in_their_order(self, bench: StoreBench) -> None:
        made = [await an_instance(bench) for _ in range(3)]

        first = await bench.store.instances(2, None)
        rest = await bench.store.instances(2, first[-1].id)

        assert [one.id for one in first + rest] == made

    async def test_of_two_who_pay_at_once_one_rents(self, bench: StoreBench) -> None:
        for _ in range(5):
            gpu = await an_instance(bench)
            quotes = [await a_quote(bench, gpu, account=name) for name in (ACCOUNT, OTHER_ACCOUNT)]

            await asyncio.gather(*(pay(bench, quote, 7_200) for quote in quotes))

            shown = [await the_quote(bench, quote) for quote in quotes]
            assert {each.status for each in shown} == {QuoteStatus.CREDITED, QuoteStatus.SUSPENSE}
            (winner,) = [each.offer.account for each in shown if each.status is QuoteStatus.CREDITED]
            assert (await the_instance(bench, gpu)).renter == winner

    async def test_when_the_grace_is_over_it_is_anybodys(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quotes = [await a_quote(bench, gpu, account=name) for name in (ACCOUNT, OTHER_ACCOUNT)]
        await pay(bench, quotes[0], 7_200)
        bench.clock.advance(3_600 + GRACE)
        await bench.store.expire_rentals(WARN, GRACE, 10)
        begin = bench.clock.now()

        await pay(bench, quotes[1], 7_200)

        shown = await the_instance(bench, gpu)
        assert shown.renter == OTHER_ACCOUNT
        assert shown.rental is not None
        assert (shown.rental.started_at, shown.rental.seconds) == (begin, 3_600)

    async def test_time_stands_still_while_an_instance_is_suspended(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        await pay(bench, await a_quote(bench, gpu), 7_200)
        until = bench.clock.now() + timedelta(hours=1)
        bench.clock.advance(600)

        assert await bench.store.suspend_instance(gpu)
        assert not await bench.store.suspend_instance(gpu)
        assert await status(bench, gpu) is InstanceStatus.SUSPENDED
        bench.clock.advance(7_200)
        assert (await bench.store.expire_rentals(0, 0, 10)).ended == 0
        assert await bench.store.resume_instance(gpu)
        assert not await bench.store.resume_instance(gpu)

        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.expires_at == until + timedelta(seconds=7_200)
        assert await status(bench, gpu) is InstanceStatus.ACTIVE


class ExpiryContract:
    """Warned once, graced, ended once."""

    async def test_a_rental_is_warned_of_graced_and_ended_each_once(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        receipt = await pay(bench, quote, 7_200)
        expire = (WARN, GRACE, 10)
        assert await bench.store.expire_rentals(*expire) == Expired()
        assert await status(bench, gpu) is InstanceStatus.ACTIVE

        bench.clock.advance(3_600 - WARN)
        async with bench.expect_ring(EVENTS):
            assert await bench.store.expire_rentals(*expire) == Expired(warned=1)
        assert await bench.store.expire_rentals(*expire) == Expired()
        (warning,) = await told(bench, EXPIRING)
        assert warning.account == ACCOUNT
        assert warning.body["data"]["gpu_instance_id"] == gpu
        assert warning.body["data"]["signature"] == receipt.signature

        bench.clock.advance(WARN)
        assert await status(bench, gpu) is InstanceStatus.GRACE
        assert await bench.store.expire_rentals(*expire) == Expired(in_grace=1)
        bench.clock.advance(GRACE)
        assert await bench.store.expire_rentals(*expire) == Expired(ended=1)
        assert await bench.store.expire_rentals(*expire) == Expired()

        assert await status(bench, gpu) is InstanceStatus.EXPIRED
        assert (await the_instance(bench, gpu)).renter is None
        (ended,) = await told(bench, EXPIRED)
        assert ended.body["data"]["quote_id"] == quote.id

    async def test_what_is_prolonged_in_its_grace_goes_on_and_is_warned_of_anew(
        self, bench: StoreBench
    ) -> None:
        gpu = await an_instance(bench)
        await pay(bench, await a_quote(bench, gpu), 7_200)
        bench.clock.advance(3_700)
        await bench.store.expire_rentals(WARN, GRACE, 10)

        await pay(bench, await a_quote(bench, gpu), 7_200)

        assert await status(bench, gpu) is InstanceStatus.ACTIVE
        bench.clock.advance(3_600)
        assert await bench.store.expire_rentals(WARN, GRACE, 10) == Expired(warned=1, in_grace=1)
        assert len(await told(bench, EXPIRING)) == 2

    async def test_many_ends_come_in_slices(self, bench: StoreBench) -> None:
        for _ in range(3):
            await pay(bench, await a_quote(bench, await an_instance(bench)), 7_200)
        bench.clock.advance(3_600 + GRACE)

        found = [await bench.store.expire_rentals(WARN, GRACE, 2) for _ in range(3)]

        assert [each.ended for each in found] == [2, 1, 0]
        assert len(await told(bench, EXPIRED)) == 3
