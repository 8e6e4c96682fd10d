"""Outages on the virtual clock: what the policy promises of them, and that the play is true to it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempa.core.retry import RetryPolicy
from tempa.webhooks.simulate import RECIPE, Scenario, play, play_recipe

POLICY = RetryPolicy()
HOUR = 3600.0
# 10,000 that wait at once for a receiver that is away for two minutes.
FLOOD = Scenario(outage_seconds=120, events=10_000, over_seconds=0)


def share_within(seconds: float, ceilings: list[float]) -> float:
    """How likely independent waits, each uniform in [0, its ceiling), sum up to less: in closed form.

    The volume of a simplex less what sticks out of the box, by inclusion and exclusion.
    """
    n = len(ceilings)
    volume = sum(
        (-1) ** count * max(seconds - sum(chosen), 0.0) ** n
        for count in range(n + 1)
        for chosen in combinations(ceilings, count)
    )
    return float(volume) / (math.factorial(n) * math.prod(ceilings))


@pytest.mark.parametrize("outage_seconds", [5, 10, 20, 30])
def test_five_tries_in_memory_lose_as_many_as_the_closed_form_says(outage_seconds: float) -> None:
    """Four waits between five tries: all is over within 30 s, so an outage of 30 s is fatal to all."""
    waits = [RECIPE.ceiling_seconds(retry) for retry in range(RECIPE.max_retries)]
    assert waits == [2, 4, 8, 16]
    flood = replace(FLOOD, outage_seconds=outage_seconds, latency_seconds=0.001, capacity_per_second=100_000)
    expected = share_within(outage_seconds, waits)
    assert play_recipe(flood).left_dead / flood.events == pytest.approx(expected, abs=0.015)


def test_two_deliveries_alone_open_nothing_and_die_as_the_closed_form_says() -> None:
    """Six attempts each: five waits, of at most 2, 4, 8, 16 and 32 s. A thousand of them, outages of 30 s."""
    pair = Scenario(outage_seconds=30, events=2, over_seconds=0, latency_seconds=0.001)
    stories = [play(replace(pair, seed=seed), POLICY) for seed in range(500)]
    assert {story.opened_after_seconds for story in stories} == {None}
    died = sum(story.dead_letters for story in stories) / 1000
    assert died == pytest.approx(share_within(30, [2, 4, 8, 16, 32]), abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_dead_endpoint_with_ten_thousand_waiting_gets_few_requests(seed: int) -> None:
    story = play(replace(FLOOD, seed=seed), POLICY)
    assert 4 <= story.requests_into_outage <= 20
    assert story.opened_after_seconds == FLOOD.latency_seconds


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("capacity", "latency", "in_flight"),
    [(50, 0.02, 4), (200, 0.01, 4), (1000, 0.002, 4), (50, 0.05, 64), (200, 0.05, 64), (1000, 0.05, 64)],
)
def test_recovery_finds_what_the_receiver_can_take(
    capacity: float, latency: float, in_flight: int, seed: int
) -> None:
    """Attempts in flight would allow 200 to 3200 a second: it is the pace that holds them back."""
    scenario = replace(
        FLOOD, capacity_per_second=capacity, latency_seconds=latency, in_flight_max=in_flight, seed=seed
    )
    story = play(scenario, POLICY)
    assert (story.delivered, story.lost) == (10_000, 0)
    assert 0.9 <= story.peak_share <= 1.25
    assert story.rejected_share <= 0.03
    assert story.drain_share is not None
    assert 1 <= story.drain_share <= (1.9 if capacity == 1000 else 1.2)


def test_a_day_without_the_receiver_and_a_hundred_thousand_events() -> None:
    day = Scenario(outage_seconds=24 * HOUR, events=100_000, over_seconds=24 * HOUR)
    story = play(day, POLICY)
    assert (story.delivered, story.left_dead, story.lost) == (100_000, 0, 0)
    # One at a time, 30 s apart on average: a standard deviation of 17 s each, 0.6 % of their number.
    assert story.requests_into_outage == pytest.approx(24 * HOUR / 30, rel=0.05)
    assert story.drain_share is not None
    assert story.drain_share <= 1.5


def test_what_died_of_the_outage_has_another_round_by_itself() -> None:
    """Events so rare that each spends its six attempts, before and after three of them open it."""
    story = play(Scenario(outage_seconds=1200, events=8, over_seconds=1200), POLICY)
    assert story.dead_letters >= 3
    assert (story.healed, story.left_dead) == (story.dead_letters, 0)


def test_what_is_parked_for_three_days_is_dead_and_healed_by_the_next_that_is_taken() -> None:
    """Retries enough for probes up to four hours apart: nothing dies of spending them."""
    patient = RetryPolicy(max_retries=50, base_seconds=4 * HOUR, cap_seconds=4 * HOUR)
    early = Scenario(outage_seconds=80 * HOUR, events=3, over_seconds=0)
    assert play(replace(early, outage_seconds=67 * HOUR), patient).dead_letters == 0
    assert (play(early, patient).dead_letters, play(early, patient).left_dead) == (3, 3)

    with_later = play(Scenario(outage_seconds=100 * HOUR, events=11, over_seconds=100 * HOUR), patient)
    assert with_later.dead_letters == with_later.healed > 0
    assert with_later.delivered == 11


def test_a_seed_tells_one_story() -> None:
    few = replace(FLOOD, events=200)
    assert play(few, POLICY) == play(few, POLICY)
    assert play_recipe(few) == play_recipe(few)
    assert play(few, POLICY) != play(replace(few, seed=2), POLICY)


def test_the_retry_policy_counts() -> None:
    """With no retry at all each of two attempts is the last, the moment it is made."""
    story = play(Scenario(outage_seconds=60, events=2, over_seconds=0), RetryPolicy(max_retries=0))
    assert (story.requests_into_outage, story.left_dead) == (2, 2)


@settings(max_examples=60, deadline=None)
@given(
    outage=st.integers(1, 600), events=st.integers(1, 60), over=st.floats(0, 1), capacity=st.integers(1, 100),
    latency=st.floats(0.001, 9), in_flight=st.integers(1, 16), retries=st.integers(0, 8),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_every_event_is_delivered_or_in_the_dead_letters(
    outage: int,
    events: int,
    over: float,
    capacity: int,
    latency: float,
    in_flight: int,
    retries: int,
    seed: int,
) -> None:
    scenario = Scenario(
        outage_seconds=outage, events=events, over_seconds=over * outage, capacity_per_second=capacity,
        latency_seconds=latency, in_flight_max=in_flight, seed=seed,
    )  # fmt: skip
    story = play(scenario, RetryPolicy(max_retries=retries))
    assert story.lost == 0
    assert story.delivered + story.left_dead == events
    assert story.healed <= story.dead_letters
