"""`tempa webhooks endpoints` and `tempa webhooks test`, at a terminal and in a pipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeServer, Terminal

PATH = "/v1/webhooks/endpoints"
VIEW: dict[str, Any] = {
    "id": "ep_1",
    "endpoint_id": "ep_1",
    "url": "https://shop.example/hook",
    "events": None,
    "description": "night shift",
    "signing": "hmac",
    "retry_statuses": [],
    "max_in_flight": 4,
    "rate_per_second": None,
    "status": "active",
    "breaker": {"state": "closed", "failures_in_a_row": 0, "failed_probes": 0, "next_probe_at": None},
    "parked_at": None,
    "held_until": None,
    "pending": 3,
    "secrets": [{"created_at": "2026-01-01T00:00:00Z", "expires_at": None}],
    "public_key": None,
    "created_at": "2026-01-01T00:00:00Z",
    "changed_at": "2026-01-01T00:00:00Z",
}
DOWN = {**VIEW["breaker"], "state": "open", "next_probe_at": "2026-01-01T00:00:30Z"}
MADE = {**VIEW, "secret": "whsec_c2VjcmV0"}
DELIVERY: dict[str, Any] = {
    "delivery_id": "dlv_1",
    "event_id": "evt_1",
    "type": "webhook.test",
    "job_id": None,
    "endpoint_id": "ep_1",
    "url": "https://shop.example/hook",
    "status": "pending",
    "attempt_count": 0,
    "reason": None,
    "what_next": "It waits.",
    "created_at": "2026-01-01T00:00:00Z",
    "next_attempt_at": None,
    "finished_at": None,
    "attempts": [],
}
ATTEMPT = {
    "attempt": 1,
    "started_at": "2026-01-01T00:00:00Z",
    "outcome": "delivered",
    "http_status": 204,
    "error": None,
    "duration_ms": 12,
    "timings": {},
    "body_sha256": "ab" * 32,
    "response_excerpt": "",
}
DELIVERED = {**DELIVERY, "status": "delivered", "attempt_count": 1, "attempts": [ATTEMPT]}
REFUSED = {
    **DELIVERY,
    "status": "dead",
    "reason": "refused",
    "what_next": "Mend the receiver.",
    "attempts": [{**ATTEMPT, "outcome": "dead", "http_status": 401}],
}


def test_they_are_listed(server: FakeServer, tempa: Terminal) -> None:
    down = {**VIEW, "id": "ep_2", "breaker": DOWN, "events": ["job.failed"]}
    server.on_json(f"GET {PATH}", {"items": [VIEW, down], "next_cursor": None})

    shown = tempa.show("webhooks", "endpoints", "ls").stdout

    one, other = shown.splitlines()[2:]
    assert one.split()[:3] == ["ep_1", "active", "3"]
    assert "how jobs end" in one
    assert other.split()[:4] == ["ep_2", "down", "3", "job.failed"]


def test_in_a_pipe_they_are_json(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"GET {PATH}", {"items": [VIEW], "next_cursor": None})
    listed = json.loads(tempa.run("webhooks", "endpoints", "ls").stdout)
    assert [one["id"] for one in listed["items"]] == ["ep_1"]


def test_a_new_one_shows_its_secret_and_asks_for_what_was_said(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"POST {PATH}", MADE, status=201)

    made = tempa.show(
        *("webhooks", "endpoints", "add", "https://shop.example/hook", "--event", "job.failed"),
        *("--event", "endpoint.*", "--retry-status", "404", "--rate", "2.5", "--ed25519"),
    )

    assert made.stdout == "whsec_c2VjcmV0\n"
    assert server.body() == {
        "url": "https://shop.example/hook",
        "events": ["job.failed", "endpoint.*"],
        "description": "",
        "retry_statuses": [404],
        "rate_per_second": 2.5,
        "signing": "ed25519",
    }


def test_a_refused_address_is_told(server: FakeServer, tempa: Terminal) -> None:
    server.refuse(f"POST {PATH}", 422, "address-not-allowed", "Use https://.")
    refused = tempa.show("webhooks", "endpoints", "add", "http://shop.example/")
    assert refused.exit_code == 2
    assert "Use https://." in refused.stderr


def test_one_is_shown_with_how_it_fares(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(
        f"GET {PATH}/ep_1",
        {**VIEW, "breaker": DOWN, "parked_at": "2026-01-01T00:00:00Z", "rate_per_second": 2.5},
    )
    shown = tempa.show("webhooks", "endpoints", "show", "ep_1").stdout
    assert shown.startswith("ep_1  down  https://shop.example/hook\n")
    for text in ("3 waiting; at most 4 at once, 2.5 a second", "parked since", "next probe", "night shift"):
        assert text in shown


def test_a_rotation_says_until_when_the_older_secret_signs(server: FakeServer, tempa: Terminal) -> None:
    older = {"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z"}
    server.on_json(f"POST {PATH}/ep_1/rotate", {**MADE, "secrets": [*VIEW["secrets"], older]})

    rotated = tempa.show("webhooks", "endpoints", "rotate", "ep_1", "--overlap", "60")

    assert rotated.stdout == "whsec_c2VjcmV0\n"
    assert "sign too, until" in rotated.stderr
    assert server.body() == {"overlap_seconds": 60.0}


@pytest.mark.parametrize(("verb", "status"), [("pause", "paused"), ("resume", "active")])
def test_pause_and_resume(server: FakeServer, tempa: Terminal, verb: str, status: str) -> None:
    server.on_json(f"POST {PATH}/ep_1/{verb}", {**VIEW, "status": status})
    assert tempa.show("webhooks", "endpoints", verb, "ep_1").stdout.startswith(f"ep_1  {status}  ")


def test_one_is_removed(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"DELETE {PATH}/ep_1", None, status=204)
    assert tempa.show("webhooks", "endpoints", "rm", "ep_1").stdout == "ep_1 is removed.\n"


@pytest.mark.parametrize("command", [("webhooks", "test"), ("webhooks", "endpoints", "test")])
def test_a_test_waits_for_its_answer(server: FakeServer, tempa: Terminal, command: tuple[str, ...]) -> None:
    server.on_json(f"POST {PATH}/ep_1/test", {"delivery_id": "dlv_1", "event_id": "evt_1"}, status=202)
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", DELIVERY, DELIVERED)

    sent = tempa.show(*command, "ep_1")

    assert (sent.stdout, sent.exit_code) == ("dlv_1  delivered, answered 204\n", 0)


def test_a_test_that_is_not_taken_is_a_fault(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"GET {PATH}", {"items": [VIEW], "next_cursor": None})
    server.on_json(f"POST {PATH}/ep_1/test", {"delivery_id": "dlv_1", "event_id": "evt_1"}, status=202)
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", REFUSED)

    sent = tempa.show("webhooks", "test", VIEW["url"])

    assert sent.exit_code == 1
    assert sent.stdout == "dlv_1  dead, answered 401\n  Mend the receiver.\n"


def test_a_test_does_not_wait_for_ever(server: FakeServer, tempa: Terminal) -> None:
    server.on_json(f"POST {PATH}/ep_1/test", {"delivery_id": "dlv_1", "event_id": "evt_1"}, status=202)
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", DELIVERY)
    assert tempa.run("webhooks", "test", "ep_1", "--wait", "0").exit_code == 1


def test_an_address_must_mean_one_endpoint(server: FakeServer, tempa: Terminal) -> None:
    twin = {**VIEW, "id": "ep_2"}
    server.on_json(f"GET {PATH}", {"items": [VIEW, twin], "next_cursor": None})
    both = tempa.show("webhooks", "test", VIEW["url"])
    assert both.exit_code == 2
    assert "ep_1, ep_2" in both.stderr
    none = tempa.show("webhooks", "test", "https://other.example/")
    assert none.exit_code == 2
    assert "endpoints add" in none.stderr


@pytest.mark.parametrize(("status", "slug"), [(404, "not-found"), (409, "conflict")])
def test_what_cannot_be_tested_is_told_from_a_test_that_was_not_taken(
    server: FakeServer, tempa: Terminal, status: int, slug: str
) -> None:
    server.refuse(f"POST {PATH}/ep_9/test", status, slug, "There is no endpoint ep_9.")
    result = tempa.run("webhooks", "test", "ep_9")
    assert (result.exit_code, result.stderr) == (2, "There is no endpoint ep_9.\n")


def test_a_test_shows_the_hint(server: FakeServer, tempa: Terminal) -> None:
    refused = {**REFUSED, "attempts": [{**REFUSED["attempts"][0], "hint": "Has it the secret?"}]}
    server.on_json(f"POST {PATH}/ep_1/test", {"delivery_id": "dlv_1", "event_id": "evt_1"}, status=202)
    server.on_json("GET /v1/webhooks/deliveries/dlv_1", refused)
    assert tempa.show("webhooks", "test", "ep_1").stdout.endswith("  Has it the secret?\n")


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--url", "https://new.example/"], {"url": "https://new.example/"}),
        (["--event", "job.failed", "--event", "endpoint.*"], {"events": ["job.failed", "endpoint.*"]}),
        (["--default-events"], {"events": None}),
        (["--description", ""], {"description": ""}),
        (["--retry-status", "404", "--max-in-flight", "8"], {"retry_statuses": [404], "max_in_flight": 8}),
        (["--no-retry-status"], {"retry_statuses": []}),
        (["--rate", "2.5"], {"rate_per_second": 2.5}),
        (["--no-rate"], {"rate_per_second": None}),
    ],
    ids=" ".join,
)
def test_only_what_is_said_is_changed(
    server: FakeServer, tempa: Terminal, options: list[str], body: dict[str, Any]
) -> None:
    server.on_json(f"PATCH {PATH}/ep_1", VIEW)
    shown = tempa.show("webhooks", "endpoints", "set", "ep_1", *options)
    assert shown.stdout.startswith("ep_1  active  ")
    assert server.body() == body


@pytest.mark.parametrize(
    "options", [[], ["--rate", "1", "--no-rate"], ["--event", "job.failed", "--default-events"]], ids=" ".join
)
def test_a_change_must_be_clear(server: FakeServer, tempa: Terminal, options: list[str]) -> None:
    assert tempa.run("webhooks", "endpoints", "set", "ep_1", *options).exit_code == 2
    assert server.requests == []
