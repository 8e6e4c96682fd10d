"""What a claim may still take from an endpoint once its row is locked: all may have changed by then."""

from __future__ import annotations

from typing import Any

import pytest

from tempa.adapters.stores.commands.gate import Gate, permitted

NOW = 1_000_000
ENDPOINT: dict[str, Any] = {
    "status": "active",
    "held_until": 0,
    "parked_at": None,
    "in_flight_max": 4,
    "pace_ms": None,
    "rate_per_second": None,
    "paced_at": 0.0,
}


def gate(**changes: Any) -> Gate:
    return Gate({**ENDPOINT, **changes}, NOW)


def admitted(one: Gate, in_flight: int = 0) -> int:
    """How many it lets in, with so many on their way before."""
    count = 0
    while one.admits(in_flight) and count < 100:
        one.enter()
        count += 1
    return count


@pytest.mark.parametrize(("in_flight", "more"), [(0, 4), (3, 1), (4, 0), (9, 0)])
def test_as_many_as_its_owner_allows(in_flight: int, more: int) -> None:
    assert admitted(gate(), in_flight) == more


@pytest.mark.parametrize(("in_flight", "more"), [(0, 1), (1, 0), (3, 0)])
def test_one_while_deliveries_are_parked(in_flight: int, more: int) -> None:
    assert admitted(gate(parked_at=NOW - 1), in_flight) == more


@pytest.mark.parametrize("status", ["paused", "disabled", "removed"])
def test_none_when_nothing_is_wanted(status: str) -> None:
    assert admitted(gate(status=status, parked_at=NOW)) == 0


def test_none_before_a_hold_is_over() -> None:
    assert admitted(gate(held_until=NOW + 1)) == 0
    assert admitted(gate(held_until=NOW)) == 4


def test_the_slower_of_two_rates_counts() -> None:
    assert [
        permitted({**ENDPOINT, "in_flight_max": 99, "pace_ms": pace, "rate_per_second": rate}, NOW)
        for pace, rate in ((None, None), (5.0, None), (None, 200.0), (5.0, 100.0), (10.0, 200.0))
    ] == [None, 5, 5, 3, 3]  # 20 ms' worth, and the one that is due


def test_each_that_enters_moves_the_next_one_on() -> None:
    paced = gate(rate_per_second=100.0, paced_at=float(NOW), in_flight_max=99)
    assert admitted(paced) == 1
    assert paced.paced_at == NOW + 10


def test_without_a_pace_the_time_stays_as_it_was() -> None:
    free = gate(paced_at=5.0)
    admitted(free)
    assert free.paced_at == 5.0
