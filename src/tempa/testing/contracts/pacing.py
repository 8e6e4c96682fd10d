"""Contract of `WebhookStore` for how much an endpoint gets at a time, and how fast."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.bench import ROOMY
from tempa.testing.contracts.delivery_steps import bring_back, endpoint_of, settle, take_down
from tempa.testing.contracts.endpoints import change, plan_to, register
from tempa.testing.contracts.samples import DELIVERED, LEASE_SECONDS, pending
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Endpoint

LATE_SECONDS = 0.02  # what a claim may come late by without the rate being lost; so early the second comes


class EndpointLimitContract:
    """What an endpoint's owner allows."""

    @pytest.mark.parametrize("most", [1, 2, 7])
    async def test_as_many_are_under_way_as_its_owner_allows(self, bench: StoreBench, most: int) -> None:
        endpoint = await register(bench, in_flight_max=most)
        await _backlog(bench, endpoint, 10)

        taken = []
        while more := await bench.take(10):
            taken += more
        assert len(taken) == most

        await settle(bench, taken[0], DELIVERED)
        assert len(await bench.take(10)) == 1

    async def test_a_rate_is_kept_to_the_millisecond(self, bench: StoreBench) -> None:
        """The times at which attempts may start, beside those of an ideal metronome."""
        endpoint = await register(bench, rate_per_second=4.0, in_flight_max=100)
        await _backlog(bench, endpoint, 12)

        assert await _starts(bench, 12) == _beats(12, 0.25)

    async def test_a_fast_rate_lets_a_claim_take_what_it_came_late_for(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=500.0, in_flight_max=100)
        await _backlog(bench, endpoint, 60)
        taken = []
        for _ in range(20):
            taken.append(len(await bench.take(100)))
            bench.clock.advance(0.008)

        # Of a claim at most four of an endpoint; four times 2 ms are the 8 ms between two claims.
        assert taken[:15] == [4] * 15

    async def test_rivals_together_keep_the_rate(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=2.0, in_flight_max=100)
        await _backlog(bench, endpoint, 8)
        started = 0
        for _ in range(4):
            takes = await asyncio.gather(*(bench.take(10) for _ in range(5)))
            started += sum(map(len, takes))
            bench.clock.advance(0.5)

        assert started == 4

    async def test_a_rate_that_was_not_used_is_not_saved_up(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=2.0, in_flight_max=100)
        await _backlog(bench, endpoint, 1)
        (first,) = await bench.take(10)
        await settle(bench, first, DELIVERED)
        bench.clock.advance(3600.0)
        await _backlog(bench, endpoint, 5)

        assert len(await bench.take(10)) == 1

    async def test_a_changed_rate_holds_from_the_next_on(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=1.0, in_flight_max=100)
        await _backlog(bench, endpoint, 6)
        await bench.take(10)
        await change(bench, endpoint, rate_per_second=10.0)
        bench.clock.advance(1.0)

        assert await _starts(bench, 3) == _beats(3, 0.1)

    async def test_retries_keep_the_rate_too(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=2.0, in_flight_max=100)
        await _backlog(bench, endpoint, 1)
        (first,) = await bench.take(10)
        await settle(bench, first, pending())

        assert await bench.take(10) == []
        bench.clock.advance(0.5)
        assert len(await bench.take(10)) == 1


class RecoveryPaceContract:
    """An endpoint that has come back is not flooded."""

    async def test_what_was_parked_goes_out_at_a_pace(self, bench: StoreBench) -> None:
        await take_down(bench, count=12)
        await bring_back(bench)

        assert await _starts(bench, 3) == _beats(3, 0.2)

    async def test_the_pace_grows_with_what_is_taken(self, bench: StoreBench) -> None:
        await take_down(bench, count=60)
        await bring_back(bench)
        windows = [await _taken_within(bench, 0.5) for _ in range(6)]

        assert windows == sorted(windows)
        assert windows[-1] >= 3 * windows[0]

    async def test_the_slower_of_pace_and_rate_counts(self, bench: StoreBench) -> None:
        endpoint = await register(bench, rate_per_second=1.0)
        await _backlog(bench, endpoint, 8)
        for _ in range(3):
            (claimed,) = await bench.take(1)
            await settle(bench, claimed, pending(delay_seconds=50.0))
            bench.clock.advance(1.0)
        bench.clock.advance(1.0)
        (probe,) = await bench.take(10)
        assert (await endpoint_of(bench, probe.id)).parked_at is not None
        await settle(bench, probe, replace(DELIVERED))
        bench.clock.advance(1.0)

        assert await _starts(bench, 3) == _beats(3, 1.0)


async def _backlog(bench: StoreBench, endpoint: Endpoint, count: int) -> None:
    await bench.plan()
    for _ in range(count):
        await bench.admit()
    assert await plan_to(bench, endpoint) == count


def _beats(count: int, spacing: float) -> list[float]:
    """A metronome's, but for the first: it lets the others be earlier by what a claim may come late by."""
    return [0.0] + [round(number * spacing - LATE_SECONDS, 3) for number in range(1, count)]


async def _starts(bench: StoreBench, count: int) -> list[float]:
    """When the next `count` attempts start, in seconds from now, if a claim comes when it is told to."""
    started: list[float] = []
    now = 0.0
    while len(started) < count:
        claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
        started += [round(now, 3)] * len(claim.taken)
        if len(started) < count:
            claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
            started += [round(now, 3)] * len(claim.taken)
            assert claim.next_seconds is not None
            bench.clock.advance(claim.next_seconds)
            now += claim.next_seconds
    return started


async def _taken_within(bench: StoreBench, seconds: float) -> int:
    """How many attempts start within so long, each of which is taken at once."""
    count, left = 0, round(seconds * 1000)
    while left > 0:
        for claimed in await bench.take(10):
            count += 1
            await settle(bench, claimed, DELIVERED, http_status=200)
        bench.clock.advance(0.01)
        left -= 10
    return count
