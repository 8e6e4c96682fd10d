"""Payments on a development chain, over real doors: many deliveries at once, false claims."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.chaos.market import SECONDS, Market
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIVERIES = 64


@pytest.fixture(scope="module", params=["embedded", "distributed"])
def market(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    url = None
    if request.param == "distributed":
        url = fresh_database(request.getfixturevalue("cluster"), request.getfixturevalue("template"))
    with Market(tmp_path_factory.mktemp("market"), url) as made:
        made.open()
        yield made


def test_of_64_deliveries_at_once_one_is_credited(market: Market) -> None:
    sale = market.sell(SECONDS)
    market.untold.clear()
    bodies = [json.dumps({"signature": sale.signature})] * DELIVERIES
    with ThreadPoolExecutor(DELIVERIES) as pool:
        answers = list(pool.map(market.post, bodies))
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["accepted"] for answer in answers) == 1
    assert sum(answer.json()["duplicates"] for answer in answers) == DELIVERIES - 1
    market.wait_for(sale.quote_id, sale.amount)
    assert len(market.lines_of(sale.signature)) == 1


def test_who_claims_anothers_payment_first_gets_nothing_of_it(market: Market) -> None:
    """A signature is public as soon as it is sent: whoever posts it, and whatever stands beside it."""
    theirs = market.quote(SECONDS)
    sale = market.sell(SECONDS)
    market.untold.clear()
    claim = {"signature": sale.signature, "gpu_instance_id": theirs["gpu_instance_id"]}
    told = market.post(
        json.dumps({**claim, "quote_id": theirs["quote_id"], "reference": theirs["reference"]})
    )
    assert told.status_code == 200
    market.untold.append(sale.signature)
    market.tell()
    market.wait_for(sale.quote_id, sale.amount)
    assert market.get(f"/v1/rentals/quotes/{theirs['quote_id']}")["paid"] == "0"
    assert [line["quote_id"] for line in market.lines_of(sale.signature)] == [sale.quote_id]
