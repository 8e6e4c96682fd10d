"""Contract of `WebhookStore` for claims: who is taken, in whose turn, within whose room."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, settle, with_attempts
from tempa.testing.contracts.samples import DELIVERED, EXHAUSTED, pending
from tempa.webhooks.model import Attempt, DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Next

THIRD_URL = "https://hooks.example/c"
IN_FLIGHT_MAX = 4  # attempts to one endpoint at a time


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
        delivery, attempts = await with_attempts(bench, claimed.id)
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

        await settle(bench, first[0], DELIVERED)
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
            await settle(bench, claimed, DELIVERED)

        assert served == urls * 3

    async def test_an_older_backlog_goes_to_the_end_of_the_line_each_time(self, bench: StoreBench) -> None:
        for url in (URL, OTHER_URL, THIRD_URL):  # none of them new any more
            await bench.deliveries_to(url)
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, DELIVERED)
        await bench.deliveries_to(URL, 4)
        bench.clock.advance(60.0)
        await bench.deliveries_to(OTHER_URL)
        await bench.deliveries_to(THIRD_URL)

        served = []
        for _ in range(4):
            bench.clock.advance(1.0)
            (claimed,) = await bench.take(1)
            served.append(claimed.url)
            await settle(bench, claimed, DELIVERED)

        assert served == [URL, OTHER_URL, THIRD_URL, URL]

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
        await settle(bench, claimed, pending(delay_seconds=1.0, hold_seconds=30.0))
        await bench.deliveries_to(OTHER_URL)
        bench.clock.advance(29.999)

        assert [one.url for one in await bench.take(10)] == [OTHER_URL]
        bench.clock.advance(0.001)
        assert [one.url for one in await bench.take(10)] == [URL, URL]

    @pytest.mark.parametrize("ending", [DELIVERED, EXHAUSTED])
    async def test_a_last_answer_holds_its_endpoint_too(self, bench: StoreBench, ending: Next) -> None:
        await bench.deliveries_to(URL, 2)
        (claimed,) = await bench.take(1)
        await settle(bench, claimed, replace(ending, hold_seconds=30.0))
        bench.clock.advance(29.999)

        assert await bench.take(10) == []
        bench.clock.advance(0.001)
        assert len(await bench.take(10)) == 1

    async def test_a_hold_is_never_shortened(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 2)
        first, second = await bench.take(2)
        await settle(bench, first, pending(hold_seconds=30.0))
        await settle(bench, second, pending(hold_seconds=5.0))
        bench.clock.advance(29.999)

        assert await bench.take(10) == []
