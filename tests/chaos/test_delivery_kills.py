"""The long form of tests/scenario/test_delivery_kills.py: 200 kills on either wiring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.testing.receiver import Receiver
from tests.chaos.deliveries import Siege
from tests.services import fresh_database

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 200


@pytest.mark.chaos
@pytest.mark.parametrize("wiring", ["embedded", "distributed"])
def test_of_200_kills_no_delivery_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path, wiring: str
) -> None:
    url = None
    if wiring == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Receiver() as receiver, Siege(tmp_path, receiver, url, hasten=False) as siege:
        siege.begin()
        siege.run(KILLS)
        siege.judge()
        assert siege.in_flight, "nothing was on its way at any kill: the test proved nothing"
