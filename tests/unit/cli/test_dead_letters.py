"""`tempa dead-letters`: what could not be delivered, and sending it again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeServer, Terminal

GROUP = {
    "group": "grp_1",
    "url": "https://shop.example/hook",
    "endpoint_id": "ep_1",
    "reason": "exhausted",
    "count": 12,
    "oldest": "2026-01-01T00:00:00Z",
    "newest": "2026-01-02T00:00:00Z",
    "last_http_status": 503,
    "last_error": None,
    "what_next": "Re-drive it once the receiver answers again.",
}
LETTER = {
    "delivery_id": "dlv_1",
    "event_id": "evt_1",
    "type": "cad_generation.completed",
    "job_id": "cad_1",
    "endpoint_id": "ep_1",
    "url": "https://shop.example/hook",
    "status": "dead",
    "attempt_count": 6,
    "reason": "exhausted",
    "what_next": "Re-drive it.",
    "created_at": "2026-01-01T00:00:00Z",
    "next_attempt_at": None,
    "finished_at": "2026-01-01T00:05:00Z",
}
DEAD_LETTERS = "GET /v1/webhooks/dead-letters"
REDRIVE = "POST /v1/webhooks/dead-letters/redrive"


def test_groups_are_listed(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [GROUP], "next_cursor": None})

    assert json.loads(tempa.run("dead-letters", "ls").stdout)["items"][0]["count"] == 12


def test_no_dead_letters_is_good_news(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [], "next_cursor": None})

    assert tempa.show("dead-letters", "ls").stdout == "There are no dead letters.\n"


def test_a_groups_letters_are_shown(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [LETTER], "next_cursor": None})

    shown = tempa.show("dead-letters", "show", "grp_1").stdout

    assert "dlv_1" in shown
    assert "cad_1" in shown
    assert server.requests[0].url.params["group"] == "grp_1"


def test_redrive_sends_what_was_said(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(REDRIVE, {"matched": 12, "redriven": 12})

    result = tempa.show("dead-letters", "redrive", "--group", "grp_1", "--rate", "5")

    assert result.stdout == "12 of 12 are sent again.\n"
    assert server.body() == {"group": "grp_1", "rate_per_second": 5.0, "dry_run": False}


def test_a_dry_run_says_would(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(REDRIVE, {"matched": 2, "redriven": 0})

    result = tempa.show("dead-letters", "redrive", "dlv_1", "dlv_2", "--dry-run")

    assert result.stdout == "2 would be sent again.\n"
    assert server.body() == {"delivery_ids": ["dlv_1", "dlv_2"], "dry_run": True}


def test_redrive_of_nothing_in_particular_is_refused(server: FakeServer, tempa: Terminal) -> None:
    result = tempa.run("dead-letters", "redrive")

    assert result.exit_code == 2
    assert "--group" in result.stderr
    assert server.requests == []


def test_discard_keeps_the_reason(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("POST /v1/webhooks/dead-letters/discard", {"discarded": 1})

    result = tempa.show("dead-letters", "discard", "dlv_1", "--reason", "test data")

    assert result.stdout == "1 discarded.\n"
    assert server.body() == {"delivery_ids": ["dlv_1"], "reason": "test data"}
