"""The token bucket of a node, by a clock that stands still."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.adapters.chains.solana.bucket import TokenBucket


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(10, burst=3, clock=Clock())

    waits = [bucket.take(10)[1] for _ in range(5)]

    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_who_would_wait_too_long_is_told_for_how_long_and_takes_no_turn() -> None:
    clock = Clock()
    bucket = TokenBucket(10, burst=1, clock=clock)

    assert bucket.take(0) == (True, 0)
    assert bucket.take(0.05) == pytest.approx((False, 0.1))
    clock.seconds += 0.1
    assert bucket.take(0) == pytest.approx((True, 0))


def test_nobody_calls_while_the_node_wants_a_pause() -> None:
    clock = Clock()
    bucket = TokenBucket(10, burst=5, clock=clock)
    bucket.pause(7)

    assert bucket.take(5) == pytest.approx((False, 7))
    bucket.pause(2)  # a shorter word does not end a longer one
    assert bucket.take(10) == pytest.approx((True, 7))
    clock.seconds += 7
    assert bucket.take(0)[0]


@given(
    st.floats(0.5, 50),
    st.integers(1, 5),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 3)), min_size=1, max_size=60),
)
def test_no_stretch_of_time_has_more_calls_than_burst_and_rate_allow(
    rate: float, burst: int, asked: list[tuple[float, float]]
) -> None:
    clock = Clock()
    bucket = TokenBucket(rate, burst, clock)
    calls: list[float] = []
    for pause, patience in asked:
        clock.seconds += pause
        given_one, wait = bucket.take(patience)
        if given_one:
            calls.append(clock.seconds + wait)

    for start, first in enumerate(calls):
        for end, last in enumerate(calls[start:], 1):
            assert end <= burst + rate * (last - first) + 1e-6
