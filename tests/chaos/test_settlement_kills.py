"""The long form of tests/scenario/test_payment_kills.py: every place, any passage, any order."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from tests.chaos.market import Market
from tests.chaos.steps import payment_labels
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 20261201
PAIRS = 40
STRIKES = 60


@pytest.fixture(params=["embedded", "distributed"])
def market(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Market]:
    url = None
    if request.param == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Market(tmp_path, url) as made:
        yield made


@pytest.mark.chaos
def test_dying_at_each_place_in_turn_loses_no_payment(market: Market) -> None:
    for label in payment_labels():
        market.crash(label)
    market.finish()


@pytest.mark.chaos
def test_dying_at_one_place_and_then_at_another_loses_no_payment(market: Market) -> None:
    rng = random.Random(SEED)
    for first, second in rng.sample(list(itertools.permutations(payment_labels(), 2)), PAIRS):
        market.crash(first, rng.randint(1, 3))
        market.crash(second, rng.randint(1, 3))
    market.finish()


@pytest.mark.chaos
def test_of_kills_at_any_moment_none_loses_a_payment(market: Market) -> None:
    rng = random.Random(SEED)
    for _ in range(STRIKES):
        market.strike(rng.uniform(0.0, 0.6))
    assert len(market.sales) > STRIKES
    market.finish()
