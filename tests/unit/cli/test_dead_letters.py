"""`tempa dead-letters`: what could not be delivered, and sending it again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

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


def test_each_group_has_its_own_advice(server: FakeServer, tempa: Terminal) -> None:
    """Groups of one reason may differ: one heals by itself, of the other the endpoint is gone."""
    other = {**GROUP, "group": "grp_2", "what_next": "It cannot be sent again."}
    server.on_json(DEAD_LETTERS, {"items": [GROUP, other], "next_cursor": None})

    shown = tempa.show("dead-letters", "ls").stdout.splitlines()

    assert shown[-2:] == [f"grp_1: {GROUP['what_next']}", "grp_2: It cannot be sent again."]


def test_no_dead_letters_is_good_news(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [], "next_cursor": None})

    assert tempa.show("dead-letters", "ls").stdout == "There are no dead letters.\n"


def test_a_groups_letters_are_shown(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [LETTER], "next_cursor": None})

    shown = tempa.show("dead-letters", "show", "grp_1").stdout

    assert "dlv_1" in shown
    assert "cad_1" in shown
    assert server.requests[0].url.params["group"] == "grp_1"


ATTEMPTS = [
    {
        "attempt": 1,
        "started_at": "2026-01-01T00:00:00.000Z",
        "outcome": "retry",
        "http_status": 503,
        "error": None,
        "duration_ms": 41,
        "timings": {},
        "body_sha256": "ab" * 32,
        "response_excerpt": "down for\n\x1b[31mmaintenance",
    },
    {
        "attempt": 2,
        "started_at": "2026-01-01T00:05:00.000Z",
        "outcome": "dead",
        "http_status": None,
        "error": "connection refused",
        "duration_ms": 3,
        "timings": {},
        "body_sha256": None,
        "response_excerpt": "",
    },
]


def test_a_delivery_is_shown_with_every_attempt(server: FakeServer, tempa: Terminal) -> None:
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", {**LETTER, "attempts": ATTEMPTS})

    lines = tempa.show("dead-letters", "show", "dlv_1").stdout.splitlines()

    assert lines[0] == "dlv_1  dead (exhausted)"
    first, second = [line.split(maxsplit=1) for line in lines[-2:]]
    assert (first[0], second[0]) == ("1", "2")
    for words in ("2026-01-01 ", "retry", "41", "503; down for ?[31mmaintenance"):
        assert words in first[1]
    for words in ("dead", "3", "connection refused"):
        assert words in second[1]
    document = json.loads(tempa.show("dead-letters", "show", "dlv_1", "--json").stdout)
    assert document["attempts"] == ATTEMPTS


def test_hints_are_shown_once_with_their_attempts(server: FakeServer, tempa: Terminal) -> None:
    first, last = ATTEMPTS
    hinted = [{**first, "hint": "redirects_to /a\x1b[31m"}, last, {**last, "attempt": 3, "hint": "Look."}]
    again = {**first, "attempt": 4, "hint": hinted[0]["hint"]}
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", {**LETTER, "attempts": [*hinted, again]})

    lines = tempa.show("dead-letters", "show", "dlv_1").stdout.splitlines()

    assert lines[-2:] == ["  1, 4: redirects_to /a?[31m", "  3: Look."]


def test_what_was_discarded_shows_why_and_what_is_of_no_job_names_none(
    server: FakeServer, tempa: Terminal
) -> None:
    discarded = {**LETTER, "status": "canceled", "discard_reason": "receiver is gone"}
    record = {**discarded, "type": "webhook.test", "job_id": None, "attempts": []}
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", record)

    lines = tempa.show("dead-letters", "show", "dlv_1").stdout.splitlines()

    assert lines[1] == "  webhook.test, to https://shop.example/hook"
    assert lines[3] == "  discarded: receiver is gone"


def test_a_group_that_is_not_there_is_told(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(DEAD_LETTERS, {"items": [], "next_cursor": None})

    result = tempa.run("dead-letters", "show", "grp_none")

    assert result.exit_code == 1
    assert "There is no group grp_none" in result.stderr


def test_a_delivery_that_is_not_there_is_told(server: FakeServer, tempa: Terminal) -> None:
    server.refuse("GET /v1/webhooks/deliveries/dlv_9", 404, "not-found", "There is no delivery dlv_9.")

    result = tempa.run("dead-letters", "show", "dlv_9")

    assert (result.exit_code, result.stderr) == (1, "There is no delivery dlv_9.\n")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["redrive", "dlv_9"], {"matched": 0, "redriven": 0}),
        (["redrive", "dlv_9", "--dry-run"], {"matched": 0, "redriven": 0}),
        (["discard", "dlv_9", "--reason", "gone"], {"discarded": 0}),
    ],
    ids=["redrive", "dry-run", "discard"],
)
def test_what_matches_nothing_is_told(
    server: FakeServer, tempa: Terminal, arguments: list[str], answer: dict[str, int]
) -> None:
    server.on_json(f"POST /v1/webhooks/dead-letters/{arguments[0]}", answer)

    for_programs = tempa.run("dead-letters", *arguments)
    for_people = tempa.show("dead-letters", *arguments)

    assert (for_programs.exit_code, for_people.exit_code) == (1, 1)
    assert json.loads(for_programs.stdout) == answer
    assert for_people.stdout == ""
    assert "No dead letter is meant" in for_people.stderr


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
