"""A server dies while payments come in: none is lost, none credited twice. `make chaos` has the long form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chaos.market import Market
from tests.services import fresh_database

if TYPE_CHECKING:
    from pathlib import Path

# Before and behind the commit that makes a 200 true, and the one that makes a payment time.
LABELS = ("take_in.in_commit", "take_in.committed", "settle.claimed", "posting.in_commit", "settle.posted")


@pytest.mark.parametrize("where", ["embedded", "distributed"])
def test_of_payments_at_a_few_deaths_each_is_credited_once(
    request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    url = None
    if where == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Market(tmp_path, url) as market:
        for label in LABELS:
            market.crash(label)
        market.finish()
