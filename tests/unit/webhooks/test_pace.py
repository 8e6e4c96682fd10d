"""The rate of recovery: how it grows, where it stops, what the gate lets through."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.webhooks import pace as paces
from tempa.webhooks.pace import Pace

T0 = 1_796_040_000_000

results = st.lists(st.tuples(st.booleans(), st.integers(-5_000, 5_000)), max_size=200)


def fed(pace: Pace | None, start: int, per_second: float, milliseconds: int, refused: int = 0) -> Pace | None:
    """The pace after so many answers a second, evenly, the first `refused` of them refusals."""
    count = math.ceil(per_second * milliseconds / 1000)
    for number in range(1, count + 1):
        if pace is None:
            return None
        pace = paces.after(pace, start + round(number * milliseconds / count), taken=number > refused)
    return pace


def at_rate(rate: float, ceiling: float | None = None) -> Pace:
    """A second old, and used to the full."""
    earlier = paces.Window(T0 - 1000, taken=round(rate / 2))
    return Pace(rate, ceiling, earlier, paces.Window(T0 - 500, taken=round(rate / 2)))


def test_it_starts_with_five_a_second() -> None:
    assert paces.interval_ms(paces.start(T0)) == 200.0


def test_it_grows_by_half_each_half_second_that_is_used() -> None:
    pace: Pace | None = paces.start(T0)
    rates = []
    for window in range(6):
        assert pace is not None
        rates.append(pace.rate_per_second)
        pace = fed(pace, T0 + 500 * window, pace.rate_per_second, 500)
    assert rates == [5 * 1.5**window for window in range(6)]


def test_while_it_grows_fast_a_single_refusal_holds_it_and_the_second_makes_it_fall() -> None:
    """Of a hundred taken in the last second, 0.9 of them: 90/s."""
    one = paces.after(at_rate(100), T0, taken=False)
    assert one is not None
    assert (one.rate_per_second, one.ceiling_per_second) == (100, None)

    two = paces.after(one, T0 + 1, taken=False)
    assert two is not None
    assert two.rate_per_second == pytest.approx(90, rel=0.01)
    assert two.ceiling_per_second == two.rate_per_second


def test_it_falls_to_what_was_taken_not_to_what_was_sent() -> None:
    """Two hundred a second were allowed, and sent; the receiver took fifty."""
    windows = paces.Window(T0 - 1000, taken=25), paces.Window(T0 - 500, taken=24, rejected=75)
    pace = paces.after(Pace(200, None, *windows), T0, taken=False)
    assert pace is not None
    assert pace.rate_per_second == pytest.approx(0.9 * 49)


def test_what_was_sent_at_the_rate_before_does_not_make_it_fall_twice() -> None:
    """Sixty were on their way when it fell; then it is used for half a second, and takes all."""
    pace: Pace | None = fed(paces.cut(at_rate(100), T0), T0, per_second=1000, milliseconds=60, refused=60)
    pace = fed(pace, T0 + 60, per_second=90, milliseconds=440)
    assert pace is not None
    assert pace.current.since == T0 + 500
    assert pace.rate_per_second == pytest.approx(90)


@pytest.mark.parametrize("late_ms", [0, 1, 499])
def test_what_was_sent_before_it_came_back_does_not_make_it_fall(late_ms: int) -> None:
    pace: Pace | None = paces.start(T0, ceiling_per_second=80)
    for _ in range(8):
        assert pace is not None
        pace = paces.after(pace, T0 + late_ms, taken=False)
    assert pace is not None
    assert (pace.rate_per_second, pace.ceiling_per_second) == (5, 80)


def test_from_its_ceiling_on_it_grows_by_two_percent() -> None:
    pace: Pace | None = at_rate(90, ceiling=90)
    for window, expected in enumerate([90 * 1.02, 90 * 1.02**2, 90 * 1.02**3]):
        assert pace is not None
        pace = fed(pace, T0 + 500 * window, pace.rate_per_second, 500)
        assert pace is not None
        assert pace.rate_per_second == pytest.approx(expected)


def test_below_its_ceiling_it_grows_fast_but_not_past_it() -> None:
    grown = fed(at_rate(80, ceiling=90), T0 - 490, 80, 500)
    assert grown is not None
    assert grown.rate_per_second == 90


def test_one_percent_of_refusals_does_not_make_it_fall() -> None:
    window = paces.Window(T0 - 500, taken=300)
    pace: Pace | None = Pace(600, None, window, paces.Window(T0))
    for number in range(3000):
        assert pace is not None
        pace = paces.after(pace, T0 + round(number / 0.6), taken=number % 100 != 50)
    assert pace is not None
    assert pace.rate_per_second == 600


def test_a_rate_that_is_not_used_does_not_grow_and_is_over_after_four_windows() -> None:
    pace: Pace | None = at_rate(100)
    held = []
    while pace is not None:
        held.append(pace.rate_per_second)
        now = pace.current.since + 500
        pace = paces.after(pace, now, taken=True)
    # The window under way was used: it grows once. Then one answer in half a second, four times.
    assert held == [100, 150, 150, 150, 150]


def test_a_stall_of_ours_does_not_end_it() -> None:
    """A minute in which nothing came back is one window that was not used."""
    pace = paces.after(at_rate(100), T0 + 60_000, taken=True)
    assert pace is not None
    assert pace.rate_per_second == 100


def test_beyond_two_thousand_a_second_it_is_over() -> None:
    assert fed(at_rate(1300), T0 - 499, 1300, 500) is not None
    assert fed(at_rate(1400), T0 - 499, 1400, 500) is None


def test_near_its_ceiling_it_falls_by_twice_the_share_that_is_refused() -> None:
    """Of 100 in half a second 4 were refused: it falls by 8 %, at the window's end, not at once."""
    earlier = paces.Window(T0 - 1000, taken=100)
    pace: Pace | None = Pace(200, 190, earlier, paces.Window(T0 - 500))
    rates = set()
    for number in range(1, 101):
        assert pace is not None
        rates.add(pace.rate_per_second)
        pace = paces.after(pace, T0 - 500 + 5 * number, taken=number % 25 != 0)
    assert rates == {200}
    assert pace is not None
    assert (pace.rate_per_second, pace.ceiling_per_second) == (184, 184)


def test_near_its_ceiling_it_falls_no_lower_than_a_receiver_at_its_limit_asks() -> None:
    """The receiver takes half of what it took: of 100 in half a second 50, which are 100/s, so 90."""
    earlier = paces.Window(T0 - 1000, taken=100)
    pace: Pace | None = Pace(200, 190, earlier, paces.Window(T0 - 500))
    for number in range(1, 101):
        assert pace is not None
        pace = paces.after(pace, T0 - 500 + 5 * number, taken=number % 2 == 0)
    assert pace is not None
    assert pace.rate_per_second == 90


def test_a_clock_that_is_set_back_does_not_stop_it() -> None:
    hour = 3_600_000
    pace = paces.after(at_rate(100), T0 - hour, taken=True)
    assert pace is not None
    grown = fed(pace, T0 - hour, 100, 510)
    assert grown is not None
    assert grown.rate_per_second == 150


@given(results)
def test_it_is_always_a_rate_one_can_wait_for(answers: list[tuple[bool, int]]) -> None:
    pace: Pace | None = paces.start(T0)
    now = T0
    for taken, step in answers:
        now += step
        pace = paces.after(pace or paces.start(now), now, taken=taken)
        if pace is not None:
            assert 1 <= pace.rate_per_second <= 2000
            assert 0.5 <= paces.interval_ms(pace) <= 1000
            assert Pace.of(json.loads(json.dumps(pace.as_dict()))) == pace


@given(results)
def test_it_never_ends_with_a_refusal(answers: list[tuple[bool, int]]) -> None:
    pace: Pace | None = paces.start(T0)
    now = T0
    for taken, step in answers:
        now += step
        pace = paces.after(pace or paces.start(now), now, taken=taken)
        assert taken or pace is not None


@pytest.mark.parametrize(("pace", "interval"), [(None, 0), (paces.start(T0), 200)])
def test_a_pace_spaces_the_starts(pace: Pace | None, interval: float) -> None:
    assert paces.interval_ms(pace) == interval


def test_without_a_rate_any_number_may_start() -> None:
    assert paces.permits(0, 0.0, T0) is None


@pytest.mark.parametrize("rate", [1, 5, 33, 200, 1000])
@pytest.mark.parametrize("late_ms", [0, 1, 7, 19])
def test_claims_that_come_late_lose_nothing_and_gain_nothing(rate: int, late_ms: int) -> None:
    """In ten seconds as many start as the rate says, give or take what the tolerance is worth."""
    interval, ready, started, now = 1000 / rate, 0.0, 0, T0
    while now < T0 + 10_000:
        may = paces.permits(ready, interval, now)
        assert may is not None
        ready = paces.ready_after(ready, interval, now, may)
        started += may
        now = math.ceil(ready) + late_ms
    assert abs(started - 10 * rate) <= 1 + paces.LAG_MS / interval


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 8)), max_size=80), st.integers(1, 1000))
def test_no_span_sees_more_starts_than_the_rate_allows(claims: list[tuple[int, int]], rate: int) -> None:
    interval, ready, now = 1000 / rate, 0.0, T0
    starts: list[int] = []
    for step, wanted in claims:
        now += step
        may = min(paces.permits(ready, interval, now) or 0, wanted)
        ready = paces.ready_after(ready, interval, now, may) if may else ready
        starts += [now] * may
    for first, begin in enumerate(starts):
        for count, end in enumerate(starts[first:], start=1):
            assert count <= 1 + (end - begin + paces.LAG_MS) / interval + 1e-6


def test_after_a_clock_was_set_back_it_waits_an_interval_not_an_hour() -> None:
    ready = paces.ready_after(0, 200.0, T0, 1)
    assert paces.permits(ready, 200.0, T0 - 3_600_000) == 0
    assert paces.ready_after(ready, 200.0, T0 - 3_600_000, 0) == T0 - 3_600_000 + 200
