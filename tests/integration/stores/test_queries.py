"""Every named query fits the schema, says why it is as it is, and goes by an index where it must."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.sqlite.access import SQL

if TYPE_CHECKING:
    import sqlite3

NAMES = sorted(name for name in SQL.available_queries if not name.endswith("_cursor"))
FINISHED = 100_000

# A parameter's value makes no difference to SQLite's plan, but for a null that is compared.
ALL_NULL = dict.fromkeys(
    (name for query in NAMES for name in re.findall(r"(?<!:):(\w+)", getattr(SQL, query).sql)), None
)

# What runs often, or on the one writer: each of these must find its rows by an index.
HOT = {
    "key_holder": {"idempotency": "PRIMARY KEY", "job": "sqlite_autoindex_job_1"},
    "waiting_accounts": {"first": "job_ready", "further": "job_ready", "running": "job_running"},
    "due_jobs": {"due": "job_ready", "running": "job_work_running", "ready": "INTEGER PRIMARY KEY"},
    "take_job": {"job": "sqlite_autoindex_job_1"},
    "finished_twin": {"job": "job_work_done"},
    "beat_one": {"job": "sqlite_autoindex_job_1"},
    "end_attempt": {"job": "sqlite_autoindex_job_1"},
    "close_attempt": {"attempt": "PRIMARY KEY"},
    "end_queued": {"job": "sqlite_autoindex_job_1"},
    "expired": {"job": "job_lease"},
    "overdue": {"job": "job_overdue"},
    "next_tenant": {"beside": "job_bound", "further": "job_bound"},
    "bound_jobs": {"job": "job_bound"},
    "lapsed": {"job": "job_lapsed"},
    "list_jobs": {"job": "job_account"},
    "job_events": {"event": "sqlite_autoindex_event_2"},
    "feed": {"event": "event_feed"},
    "unplanned": {"event": "event_unplanned"},
    "unplanned_number": {"event": "sqlite_autoindex_event_1"},
    "endpoint_number": {"endpoint": "endpoint_url"},
    "next_delayed": {"delayed": "job_delayed"},
    "due_deliveries": {
        "further": "endpoint_line",
        "ready": "endpoint_line",
        "due": "delivery_pending",
        "leased": "delivery_leased",
        "earlier": "delivery_unfinished",
    },
    "rejoin_line": {
        "waiting": "delivery_pending",
        "earlier": "delivery_unfinished",
        "leased": "delivery_leased",
    },
    "doubt_untried": {"slow": "INTEGER PRIMARY KEY", "untried": "endpoint_untried"},
    "next_in_line": {"endpoint": "endpoint_next"},
    "lease_deliveries": {"delivery": "INTEGER PRIMARY KEY"},
    "end_delivery_attempts": {"delivery": "sqlite_autoindex_delivery_1"},
    "free_deliveries": {"delivery": "delivery_leased"},
    "list_deliveries": {"delivery": "delivery_account"},
    "prune_endpoint": {"delivery": "delivery_endpoint"},
    "any_to_heal": {"delivery": "delivery_heal"},
    "letters_to_heal": {"delivery": "delivery_heal"},
    "healing_endpoints": {"endpoint": "endpoint_healing"},
    "long_parked": {"endpoint": "endpoint_parked", "waiting": "delivery_pending"},
    "expire_deliveries": {"endpoint": "INTEGER PRIMARY KEY", "waiting": "delivery_pending"},
    "spent_payloads": {"delivery": "delivery_payload"},
    "prune_notices": {"old": "event_of_no_job"},
    "registered_numbers": {"endpoint": "sqlite_autoindex_endpoint_1"},
    "dead_groups": {"dead": "delivery_dead", "latest": "delivery_dead"},
    "key_by_digest": {"api_key": "sqlite_autoindex_api_key_2"},
    "lapsed_files": {"file": "file_expiry"},
    "open_jobs": {
        "first": "job_ready",
        "further": "job_ready",
        "queued": "job_ready",
        "running": "job_running",
    },
    "queue_position": {"mine": "sqlite_autoindex_job_1", "ahead": "job_ready"},
    "past_jobs": {"job": "job_timed"},
    "account": {"account": "PRIMARY KEY"},
    "compute_of_day": {"account_day": "account_day_sum"},
    "insert_signature": {"other": "inbox_signature"},
    "claim_inbox": {"inbox": "inbox_signature", "due": "inbox_due"},
    "settle_inbox": {"inbox": "inbox_signature"},
    "inbox_states": {"inbox": "inbox_signature"},
    "next_lookup": {"inbox": "inbox_due"},
    "missed_lookups": {"inbox": "inbox_due"},
    "recall_lookups": {"inbox": "inbox_signature"},
    "quotes_named": {
        "quote": "INTEGER PRIMARY KEY",
        "named": "sqlite_autoindex_quote_2",
        "noted": "sqlite_autoindex_quote_1",
    },
    "watched_quotes": {"quote": "quote_expiry"},
    "list_quotes": {"quote": "quote_account"},
    "receipts_of": {"receipt": "receipt_signature"},
    "allocations_of": {"allocation": "allocation_receipt"},
    "renter": {"rental": "rental_open"},
    "instance": {"latest": "rental_instance"},
    "warn_rentals": {"near": "rental_expiry"},
    "end_rentals": {"past": "rental_expiry"},
    "anomalies_of": {"anomaly": "anomaly_signature"},
    "forget_days": {"past": "account_day_sum", "account_day": "INTEGER PRIMARY KEY"},
}


def plan(database: sqlite3.Connection, name: str) -> list[str]:
    """The steps of a query's plan, those of its subqueries too."""
    steps = database.execute(f"explain query plan {getattr(SQL, name).sql}", ALL_NULL)
    return [step["detail"] for step in steps]


@pytest.mark.parametrize("name", NAMES)
def test_every_query_can_be_prepared(name: str, database: sqlite3.Connection) -> None:
    assert list(database.execute(f"explain {getattr(SQL, name).sql}", ALL_NULL))


def test_every_query_says_why_it_is_as_it_is() -> None:
    assert not [name for name in NAMES if not getattr(SQL, name).__doc__]


@pytest.mark.parametrize("name", sorted(HOT))
def test_a_hot_query_finds_its_rows_by_an_index(name: str, database: sqlite3.Connection) -> None:
    steps = plan(database, name)

    for table, index in HOT[name].items():
        (step, *_) = [step for step in steps if re.match(rf"(SEARCH|SCAN) {table}\b", step)]
        assert re.search(rf"USING (COVERING )?(INDEX )?{index}\b", step), steps


def test_a_claim_never_meets_what_is_finished(database: sqlite3.Connection) -> None:
    """With statistics too, which make a planner bold: 100,000 finished jobs of equal work, three queued."""
    _finish_many_jobs(database)
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        steps = plan(database, "waiting_accounts") + plan(database, "due_jobs")

        assert not [step for step in steps if re.match(r"SCAN (job|due|ready|first|further)\b", step)], steps
        assert [step for step in steps if "due USING INDEX job_ready (lane=? AND account=?" in step], steps
        assert _cost(database, "waiting_accounts", lanes='["cpu"]') < 500
        assert _cost(database, "due_jobs", **_due(limit=1)) < 2000


def test_a_flood_of_one_account_makes_no_claim_dearer(database: sqlite3.Connection) -> None:
    """20,000 of one account wait, and one of another: the index is jumped through, not read."""
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         tags, request)
        with recursive n(i) as (select 0 union all select i + 1 from n where i < 20000)
        select 'f' || i, iif(i, 'flood', 'zebra'), 'queued', 'e', 'cpu', 5, 1, 1, 9, '{}', '{}' from n
        """
    )
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert _cost(database, "waiting_accounts", lanes='["cpu"]') < 500
        assert _cost(database, "due_jobs", **_due(limit=8, account="flood")) < 4000


def test_tenants_are_told_from_each_other_without_their_jobs(database: sqlite3.Connection) -> None:
    """20,000 jobs of one tenant wait, one of two others, and 100,000 that were bound are finished."""
    _finish_many_jobs(database)
    database.execute("update job set gpu_instance_id = 'gpu_1'")
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         tags, request, gpu_instance_id)
        with recursive n(i) as (select 0 union all select i + 1 from n where i < 20000)
        select 'f' || i, iif(i, 'flood', 'zebra'), 'queued', 'e', 'cpu', 5, 1, 1, 9, '{}', '{}',
               iif(i < 20000, 'gpu_1', 'gpu_2') from n
        """
    )
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        for account in ("", "flood", "zebra"):
            assert _cost(database, "next_tenant", gpu_instance_id="gpu_1", account=account) < 200
        assert _cost(database, "bound_jobs", gpu_instance_id="gpu_1", account="zebra", limit=100) < 500


def test_what_waits_for_equal_work_costs_a_claim_little(database: sqlite3.Connection) -> None:
    """1,000 of higher priority, passed over for the two that run something else."""
    _finish_many_jobs(database)
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         lease_until, work_key, tags, request)
        with recursive n(i) as (select 0 union all select i + 1 from n where i < 1000)
        select 'w' || i, 'acme', iif(i, 'queued', 'processing'), 'e', 'cpu', 8, 1, 1, 9,
               iif(i, null, 9), 'twin', '{}', '{}' from n
        """
    )
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert _cost(database, "due_jobs", **_due(limit=2)) < 2000 + 30 * 1000


def test_a_look_for_a_finished_twin_ends_with_the_first(database: sqlite3.Connection) -> None:
    """100,000 jobs of equal work are done."""
    _finish_many_jobs(database)
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert _cost(database, "finished_twin", account="acme", work_key="twin", now=1) < 200


def test_a_look_for_expired_leases_never_meets_what_is_finished(database: sqlite3.Connection) -> None:
    _finish_many_jobs(database)
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert [step for step in plan(database, "expired") if "job_lease" in step]
        assert _cost(database, "expired", now=10, limit=10) < 1000


CLAIM = {"now": 10, "offered_max": 4, "limit": 64, "full_accounts": "[]", "full_hosts": "[]"}


def test_a_backlog_at_one_endpoint_makes_no_claim_dearer(database: sqlite3.Connection) -> None:
    """20,000 pending and 20,000 delivered at one endpoint, one pending at another."""
    _pile_up_deliveries(database)
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert _cost(database, "due_deliveries", **CLAIM) < 3000
        _rejoin(database, 1)
        assert _cost(database, "rejoin_line", endpoint_number=1, now=10) < 300


def test_an_endpoint_that_has_all_it_may_have_is_not_asked_for_its_backlog(
    database: sqlite3.Connection,
) -> None:
    """20,000 pending there, and four in flight."""
    _pile_up_deliveries(database)
    database.execute(
        """
        update delivery
        set status = 'leased', lease_until = 1
        where number in (select number from delivery where status = 'pending' and endpoint_number = 1 limit 4)
        """
    )

    assert _cost(database, "rejoin_line", endpoint_number=1, now=10) < 300


@pytest.mark.parametrize("hosts", [1, 100, 20_000])
def test_a_crowd_of_endpoints_makes_no_claim_dearer(database: sqlite3.Connection, hosts: int) -> None:
    """20,000 URLs that are due, at so many hosts; the same as many more that come due later."""
    _crowd(database, hosts)
    costs = []
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        costs.append(_cost(database, "due_deliveries", **CLAIM))
        assert _cost(database, "next_in_line", now=10) < 50
    assert max(costs) < 64 * 400


def test_what_waits_behind_a_full_host_costs_a_claim_little(database: sqlite3.Connection) -> None:
    _crowd(database, 1)
    database.execute("update endpoint set host = 'other' where number = 20000")
    database.execute("update endpoint set account = 'globex' where number = 19999")

    full = {**CLAIM, "full_hosts": '["1/acme/h0"]'}
    found = list(database.execute(SQL.due_deliveries.sql, full))

    assert sorted((row["account"], row["host"]) for row in found) == [("acme", "other"), ("globex", "h0")]
    assert _cost(database, "due_deliveries", **full) < 3000 + 25 * 20_000


def test_what_waits_behind_a_full_account_costs_a_claim_nothing(database: sqlite3.Connection) -> None:
    _crowd(database, 20_000)
    database.execute("update endpoint set account = 'globex' where number = 20000")

    full = {**CLAIM, "full_accounts": '["1/acme"]'}
    found = list(database.execute(SQL.due_deliveries.sql, full))

    assert [row["account"] for row in found] == ["globex"]
    assert _cost(database, "due_deliveries", **full) < 1500


def test_of_many_accounts_the_first_of_each_are_offered(database: sqlite3.Connection) -> None:
    """400 accounts with 50 endpoints each: a claim of 64 is offered 256, each of another account."""
    _crowd(database, 1)
    database.execute("update endpoint set account = 'a' || (number % 400)")

    found = list(database.execute(SQL.due_deliveries.sql, CLAIM))

    assert len(found) == len({row["account"] for row in found}) == 4 * 64


def test_the_next_retry_is_found_without_the_queue(database: sqlite3.Connection) -> None:
    """20,000 jobs wait for a worker, one for its retry."""
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         tags, request)
        with recursive n(i) as (select 0 union all select i + 1 from n where i < 20000)
        select 'w' || i, 'acme', 'queued', 'e', 'cpu', 5, 1, iif(i, 1, 99), 9, '{}', '{}' from n
        """
    )
    for statistics in (False, True):
        if statistics:
            database.execute("analyze")

        assert _cost(database, "next_delayed", lanes='["cpu", "gpu"]', now=10) < 200
    assert SQL.next_delayed(database, lanes='["cpu", "gpu"]', now=10) == 99


def _due(limit: int, account: str = "acme") -> dict[str, Any]:
    return {"lanes": '["cpu"]', "account": account, "now": 10, "limit": limit}


def _finish_many_jobs(database: sqlite3.Connection) -> None:
    database.execute("pragma synchronous = off")
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, completed_at, run_at,
                         retained_until, work_key, tags, request, result)
        with recursive n(i) as (select 1 union all select i + 1 from n where i < :finished)
        select 'cad_' || i, 'acme', 'completed', 'e', 'cpu', 5, i, i, 1, 9, 'twin', '{}', '{}', '{}' from n
        """,
        {"finished": FINISHED},
    )
    database.execute(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         work_key, tags, request)
        values ('q1', 'acme', 'queued', 'e', 'cpu', 5, 1, 1, 9, 'other', '{}', '{}'),
               ('q2', 'acme', 'queued', 'e', 'cpu', 7, 1, 1, 9, null, '{}', '{}'),
               ('q3', 'acme', 'queued', 'e', 'gpu', 9, 1, 1, 9, 'twin', '{}', '{}')
        """
    )


def _pile_up_deliveries(database: sqlite3.Connection) -> None:
    database.execute("pragma synchronous = off")
    database.executescript(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         tags, request)
        values ('j', 'acme', 'queued', 'e', 'cpu', 5, 1, 1, 9, '{}', '{}');
        insert into endpoint (number, id, account, url, host, origin, created_at, changed_at, line_at)
        values (1, 'ep_1', 'acme', 'https://slow.example', 'slow.example', 'job', 1, 1, 1),
               (2, 'ep_2', 'acme', 'https://fine.example', 'fine.example', 'job', 1, 1, 1);
        insert into event (id, account, job_id, sequence, type, at, body)
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 40001)
        select 'evt_' || i, 'acme', 'j', i, 'job.stage', 1, '{}' from n;
        insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at,
                              next_at, finished_at, message)
        select 'dlv_' || number, 'acme', number, 1 + (number = 40001), 'j' || number, 't',
               iif(number % 2, 'pending', 'delivered'), 1, 1, iif(number % 2, null, 1), '{}' from event;
        """
    )


def _crowd(database: sqlite3.Connection, hosts: int) -> None:
    """20,000 endpoints with one delivery each that is due, and 20,000 with one that is not."""
    database.execute("pragma synchronous = off")
    database.executescript(
        """
        insert into job (id, account, status, engine, lane, priority, created_at, run_at, retained_until,
                         tags, request)
        values ('j', 'acme', 'queued', 'e', 'cpu', 5, 1, 1, 9, '{}', '{}');
        insert into event (id, account, job_id, sequence, type, at, body)
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
        select 'evt_' || i, 'acme', 'j', i, 'job.stage', 1, '{}' from n;
        """
    )
    database.execute(
        """
        insert into endpoint (number, id, account, url, host, origin, created_at, changed_at, line_at)
        select number, 'ep_' || number, 'acme', 'u' || number, 'h' || (number % :hosts), 'job', 1, 1,
               iif(number > 20000, 11, 1) from event
        """,
        {"hosts": hosts},
    )
    database.execute(
        """
        insert into delivery (id, account, event_number, endpoint_number, job_id, type, status, created_at,
                              next_at, message)
        select 'dlv_' || number, account, number, number, 'j' || number, 't', 'pending', 1, line_at, '{}'
        from endpoint
        """
    )


def _rejoin(database: sqlite3.Connection, endpoint_number: int) -> None:
    SQL.rejoin_line(database, [{"endpoint_number": endpoint_number, "now": 10}])


def _cost(database: sqlite3.Connection, name: str, **parameters: Any) -> int:
    """Steps of SQLite's virtual machine that the query takes, whatever its plan says. Changes nothing."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    database.execute("begin")
    database.set_progress_handler(count, 1)
    found = list(database.execute(getattr(SQL, name).sql, parameters))
    database.set_progress_handler(None, 0)
    database.execute("rollback")
    assert found or name in {"expired", "rejoin_line"}, "a query that finds nothing costs nothing"
    return steps
