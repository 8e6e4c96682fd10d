"""Parking ten thousand deliveries is one write, and so is letting them go."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.commands import endpoints, outcomes
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.testing.contracts.bench import ROOMY
from tempa.testing.contracts.delivery_steps import URL, settle
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, LEASE_SECONDS, REFUSED, an_outcome, pending
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.testing.contracts.store import StoreBench
    from tempa.webhooks.model import Next

WAITING = 10_000
# The attempt, the delivery, the endpoint's health and its place in the line; and what is told, at most two.
WRITES_MAX = 6
COPY = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at,
                      message)
select 'dlv_copy' || i, account, -i, endpoint_number, 'j' || i, type, 'pending', created_at, next_at, message
from n, (select * from delivery order by number limit 1)
"""


def rows_changed(path: Path, bench: StoreBench, flow: Flow[Any]) -> int:
    """Run a command's transaction by itself, and count the rows that it writes."""
    assert isinstance(bench.store, SqliteStore)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("begin immediate")
        before, answer = connection.total_changes, None
        try:
            while True:
                answer = bench.store._answer(connection, flow.send(answer))
        except StopIteration:
            connection.execute("commit")
        return connection.total_changes - before


def pile_up(path: Path, count: int) -> None:
    """So many more like the first delivery, without their events: nobody looks at those here."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma foreign_keys = off")
        connection.execute(COPY, (count,))


@pytest.mark.parametrize("waiting", [1, WAITING])
async def test_opening_and_recovering_write_as_much_whatever_waits(
    bench: StoreBench, path: Path, waiting: int
) -> None:
    await bench.deliveries_to(URL, 4)
    taken = await bench.take(3)
    pile_up(path, waiting)
    for claimed in taken[:2]:
        await settle(bench, claimed, pending())

    opening = _settle(taken[2], pending(), 503)
    assert rows_changed(path, bench, opening) <= WRITES_MAX
    assert await bench.store.delivery_counts() == {"parked": waiting + 4}

    bench.clock.advance(60.0)
    claim = await bench.store.claim_deliveries(Room(ROOMY), 10, LEASE_SECONDS)
    assert len(claim.taken) == 1
    assert rows_changed(path, bench, _settle(claim.taken[0], DELIVERED, 200)) <= WRITES_MAX
    assert await bench.store.delivery_counts() == {"pending": waiting + 3}


async def test_disabling_writes_as_much_whatever_waits(bench: StoreBench, path: Path) -> None:
    await bench.deliveries_to(URL, 2)
    (claimed,) = await bench.take(1)
    pile_up(path, WAITING)

    assert rows_changed(path, bench, _settle(claimed, REFUSED, 410)) <= WRITES_MAX
    assert await bench.store.delivery_counts() == {"parked": WAITING + 1, "dead": 1}


async def test_pausing_writes_as_much_whatever_waits(bench: StoreBench, path: Path) -> None:
    endpoint = await register(bench)
    await plan_to(bench, endpoint)
    pile_up(path, WAITING)

    assert rows_changed(path, bench, endpoints._pause(ACCOUNT, endpoint.id)) <= WRITES_MAX
    assert await bench.store.delivery_counts() == {"parked": WAITING + 1}


async def test_all_going_well_an_outcome_writes_nothing_of_its_endpoints_health(
    bench: StoreBench, path: Path
) -> None:
    await bench.deliveries_to(URL, 2)
    (first,) = await bench.take(1)
    await settle(bench, first, DELIVERED, http_status=200)
    (second,) = await bench.take(1)

    # The delivery, its attempt, and the place in the line.
    assert rows_changed(path, bench, _settle(second, DELIVERED, 200)) == 3


def _settle(claimed: Any, then: Next, http_status: int) -> Flow[Any]:
    return outcomes.settle_all([outcomes.Settlement(claimed, an_outcome(http_status=http_status), then)])
