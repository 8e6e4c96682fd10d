"""Kill -9 while deliveries flow: none is lost, hardly any comes twice, each is signed, in order.

The short form, on both wirings; `make chaos` has the long one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chaos.deliveries import Siege
from tests.services import fresh_database

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.receiver import Receiver

KILLS = 6


@pytest.mark.parametrize("where", ["embedded", "distributed"])
def test_of_a_few_kills_no_delivery_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path, receiver: Receiver, where: str
) -> None:
    url = None
    if where == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Siege(tmp_path, receiver, url) as siege:
        siege.begin()
        siege.run(KILLS)
        siege.judge()
        assert siege.in_flight, "nothing was on its way at any kill: the test proved nothing"
