"""A ratio counts while the disk kept its speed; a median is judged by its bound, and nothing by nothing."""

from __future__ import annotations

import pytest

from bench.ratios import Goal, Pair, Spread, percentile, ratios, spread


def test_a_pair_is_void_when_the_disk_moved_by_more_than_a_half() -> None:
    assert not Pair(10, 5, (1000, 1500, 1200)).void
    assert Pair(10, 5, (1000, 1501, 1200)).void
    assert Pair(10, 5, (1501, 1200, 1000)).void  # slower counts as well as quicker


def test_a_pair_that_holds_no_wait_for_the_disk_always_counts() -> None:
    assert not Pair(10, 5, ()).void


def test_ratios_are_those_of_the_pairs_that_count() -> None:
    still, moved = (1000, 1000, 1000), (1000, 1000, 4000)
    pairs = [Pair(10, 5, still), Pair(90, 1, moved), Pair(3, 4, still)]
    assert ratios(pairs) == [2.0, 0.75]


def test_the_ratio_of_each_pair_is_taken_before_the_median() -> None:
    # The medians of both sides are 2 and 2: their quotient would hide that ours was slower twice.
    still = (1.0, 1.0, 1.0)
    pairs = [Pair(1, 2, still), Pair(2, 4, still), Pair(3, 1, still)]
    assert spread(ratios(pairs)) == Spread(0.5, 0.5, 3.0)


def test_a_spread_is_the_median_and_both_ends() -> None:
    assert spread([4.0, 1.0, 2.0]) == Spread(2.0, 1.0, 4.0)
    assert spread([1.0, 2.0]) == Spread(1.5, 1.0, 2.0)
    assert spread([]) is None


@pytest.mark.parametrize(
    ("goal", "median", "verdict"),
    [
        (Goal(8, at_least=True), 8.0, "met"),
        (Goal(8, at_least=True), 7.99, "MISSED"),
        (Goal(0.7, at_least=False), 0.7, "met"),
        (Goal(0.7, at_least=False), 0.71, "MISSED"),
    ],
)
def test_a_goal_judges_the_median(goal: Goal, median: float, verdict: str) -> None:
    # The ends lie on the other side of the bound: they must not decide.
    assert goal.verdict(Spread(median, -1000.0, 1000.0)) == verdict


def test_nothing_left_to_judge_by_is_no_success() -> None:
    assert Goal(8, at_least=True).verdict(None) == "void"
    assert Goal(8, at_least=False).verdict(None) == "void"


def test_a_percentile_by_nearest_rank() -> None:
    figures = [float(number) for number in range(100, 0, -1)]
    assert percentile(figures, 0.5) == 51.0
    assert percentile(figures, 0.99) == 100.0
    assert percentile([7.0], 0.99) == 7.0
