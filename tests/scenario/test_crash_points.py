"""A server dies at every place that has a label, one after the other: nothing is lost, nothing twice.

The short form: each label once, embedded, two servers at a time. `make chaos` has the long one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tempa.testing.receiver import Receiver
from tests.chaos.steps import labels
from tests.chaos.story import Story

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "credentials.written"  # passed in a fresh directory only
SERVERS = 2
LABELS_MIN = 25


def test_a_server_that_dies_at_any_label_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    known = labels()
    assert len(known) >= LABELS_MIN
    rest = [label for label in known if label != FIRST]
    chains = [[FIRST, *rest[0::SERVERS]], rest[1::SERVERS]]
    assert sorted(label for chain in chains for label in chain) == known
    with ThreadPoolExecutor(SERVERS) as pool:
        for done in [pool.submit(live_through, tmp_path / f"{n}", chain) for n, chain in enumerate(chains)]:
            done.result()


def live_through(folder: Path, chain: list[str]) -> None:
    """Each crash is the next one's past; what came of it is judged at the end, from outside."""
    folder.mkdir()
    with Receiver() as receiver, Story(folder, receiver) as story:
        for label in chain:
            story.crash(label)  # asserts that the label is passed, and died at
        assert story.finish() == []
