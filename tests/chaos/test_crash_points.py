"""The long form of tests/scenario/test_crash_points.py: both wirings, any passage, any order."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from tempa.testing.receiver import Receiver
from tests.chaos.steps import EMBEDDED_ONLY, labels, passages_max
from tests.chaos.story import Story
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tempa.testing.postgres import PostgresCluster

SEED = 20261130
PAIRS = 60  # for each seed
FRESH_ONLY = {"credentials.written"}


@pytest.fixture(params=["embedded", "distributed"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Story]:
    """A fresh server, not started yet."""
    url = None
    if request.param == "distributed":
        cluster: PostgresCluster = request.getfixturevalue("cluster")
        url = fresh_database(cluster, request.getfixturevalue("template"))
    with Receiver() as receiver, Story(tmp_path, receiver, url) as made:
        yield made


def reachable(story: Story) -> list[str]:
    """The labels that this wiring passes again and again."""
    gone = FRESH_ONLY if story.store_url is None else EMBEDDED_ONLY
    return [label for label in labels() if label not in gone]


@pytest.mark.chaos
def test_dying_at_each_label_in_turn_loses_nothing(story: Story) -> None:
    for label in reachable(story):
        story.crash(label)
    assert story.finish() == []


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_dying_at_one_label_and_then_at_another_loses_nothing(story: Story, seed: int) -> None:
    rng = random.Random(seed)
    pairs = list(itertools.permutations(reachable(story), 2))
    for first, second in rng.sample(pairs, PAIRS):
        story.crash(first, rng.randint(1, passages_max(first)))
        story.crash(second, rng.randint(1, passages_max(second)))
    assert story.finish() == []
