"""Full jitter: each wait is uniform over its whole interval, and no interval passes the cap."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.retry import RetryPolicy, full_jitter

POLICY = RetryPolicy()


class Fixed:
    """Dice that always fall the same way."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def kolmogorov_p(samples: list[float], ceiling: float) -> float:
    """The p-value of a two-sided Kolmogorov-Smirnov test against U(0, ceiling), by its asymptotic series."""
    n = len(samples)
    ordered = sorted(sample / ceiling for sample in samples)
    distance = max(max((i + 1) / n - x, x - i / n) for i, x in enumerate(ordered))
    t = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    return 2.0 * sum((-1.0) ** (k - 1) * math.exp(-2 * k * k * t * t) for k in range(1, 101))


def test_the_promised_schedule() -> None:
    assert (POLICY.max_retries, POLICY.base_seconds, POLICY.cap_seconds) == (5, 2.0, 60.0)
    assert [POLICY.ceiling_seconds(n) for n in range(8)] == [2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("retry", range(6))
def test_waits_are_uniform_over_the_whole_interval(retry: int) -> None:
    rng = random.Random(20260101 + retry)
    samples = [full_jitter(retry, POLICY, rng) for _ in range(10_000)]
    assert kolmogorov_p(samples, min(60.0, 2.0 * 2**retry)) > 0.01


def test_the_uniformity_test_can_fail() -> None:
    rng = random.Random(7)
    banded = [16 + 0.2 * (2 * rng.random() - 1) * 16 for _ in range(10_000)]  # +-20 %
    assert kolmogorov_p(banded, 32.0) < 1e-6


@given(st.integers(0, 10**30), st.floats(0, 1, exclude_max=True))
def test_no_retry_waits_longer_than_the_cap_or_less_than_nothing(retry: int, dice: float) -> None:
    wait = full_jitter(retry, POLICY, Fixed(dice))
    assert 0 <= wait <= 60
    assert wait == dice * (60.0 if retry >= 5 else 2.0 * 2**retry)


def test_no_base_means_no_wait() -> None:
    assert RetryPolicy(base_seconds=0.0).ceiling_seconds(10**30) == 0.0


@pytest.mark.parametrize("bad", [{"max_retries": -1}, {"base_seconds": -1.0}, {"cap_seconds": math.inf}])
def test_a_senseless_policy_is_a_programmers_error(bad: dict[str, float]) -> None:
    with pytest.raises(AssertionError):
        RetryPolicy(**bad)  # type: ignore[arg-type]
