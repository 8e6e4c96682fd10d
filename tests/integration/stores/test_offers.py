"""What a claim is offered of one endpoint, straight from the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.access import SQL

if TYPE_CHECKING:
    import sqlite3

CLAIM = {"now": 10, "offered_max": 4, "limit": 64, "full_accounts": "[]", "full_hosts": "[]"}
TWELVE = """
insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until, tags,
                 request)
values ('j', 'acme', 'queued', 'e', 'cpu', 5, 1, 1, 9, '{}', '{}');
insert into endpoint (number, id, account, url, host, origin, created_at, changed_at, line_at)
values (1, 'ep_1', 'acme', 'https://h', 'h', 'job', 1, 1, 1);
insert into event (id, account, job_id, sequence, type, at, body)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 12)
select 'evt_' || i, 'acme', 'j', i, 'job.stage', 1, '{}' from n;
insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at, next_at,
                      message)
select 'dlv_' || number, 'acme', number, 1, 'j' || number, 't', 'pending', 1, number - 5, '{}'
from event order by number;
"""


@pytest.mark.parametrize(
    ("in_flight_max", "parked_at", "leased", "offered"),
    [
        (4, None, 0, [1, 2, 3, 4]),
        (2, None, 0, [1, 2]),
        (9, None, 0, [1, 2, 3, 4]),  # at most so many a claim; the next takes more
        (9, None, 6, [7, 8, 9]),
        (2, None, 2, []),
        (4, 1, 0, [1]),
        (4, 1, 1, []),
    ],
)
def test_no_more_is_offered_than_may_be_under_way(
    database: sqlite3.Connection, in_flight_max: int, parked_at: int | None, leased: int, offered: list[int]
) -> None:
    database.executescript(TWELVE)
    database.execute("update endpoint set in_flight_max = ?, parked_at = ?", (in_flight_max, parked_at))
    database.execute("update delivery set status = 'leased', lease_until = 99 where number <= ?", (leased,))

    found = list(SQL.due_deliveries(database, **CLAIM))

    assert [row["number"] for row in found] == offered
    assert all(row["in_flight"] == leased for row in found)
