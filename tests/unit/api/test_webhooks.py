"""Deliveries and dead letters over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.ids import new_id
from tempa.webhooks.model import Attempt, DeadFilter, DeadGroup, DeadReason, Delivery, DeliveryStatus
from tempa.webhooks.wire import DeadGroupView, DeliveryRecord, DeliveryView
from tests.unit.api.conftest import NOW

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World

DEAD_LETTERS = "/v1/webhooks/dead-letters"


def a_delivery(**changes: Any) -> Delivery:
    fields: dict[str, Any] = {
        "id": new_id("dlv"),
        "event_id": new_id("evt"),
        "account": "default",
        "job_id": new_id("cad"),
        "type": "cad_generation.completed",
        "endpoint_id": new_id("ep"),
        "url": "https://example.com/hook",
        "status": DeliveryStatus.DEAD,
        "attempts": 1,
        "reason": DeadReason.REFUSED,
        "created_at": NOW,
        "next_attempt_at": None,
        "finished_at": NOW,
    }
    return Delivery(**(fields | changes))


AN_ATTEMPT = Attempt(
    attempt=1,
    started_at=NOW,
    outcome="dead",
    http_status=410,
    error=None,
    duration_ms=12,
    timings={"total": 0.012},
    body_sha256="00",
    response_excerpt=b"gone \xff",
    hint="It says that it is gone for good.",
)


async def test_deliveries_are_listed_by_the_page_and_filtered(world: World, http: httpx2.AsyncClient) -> None:
    world.webhooks.rows = [(a_delivery(), []) for _ in range(3)]
    world.webhooks.rows.append((a_delivery(account="other"), []))
    query = "status=dead&job_id=cad_1&endpoint_id=ep_1&limit=2"
    first = (await http.get(f"/v1/webhooks/deliveries?{query}")).json()
    second = (await http.get(f"/v1/webhooks/deliveries?{query}&cursor={first['next_cursor']}")).json()
    seen = [delivery["delivery_id"] for delivery in first["items"] + second["items"]]
    assert seen == [delivery.id for delivery, _ in world.webhooks.rows[:3]]
    assert second["next_cursor"] is None
    assert world.webhooks.asked[0] == (DeliveryStatus.DEAD, "cad_1", "ep_1")
    for item in first["items"]:
        DeliveryView.model_validate(item)


async def test_a_delivery_shows_its_attempts(world: World, http: httpx2.AsyncClient) -> None:
    delivery = a_delivery()
    world.webhooks.rows = [(delivery, [AN_ATTEMPT])]
    answer = await http.get(f"/v1/webhooks/deliveries/{delivery.id}")
    assert answer.status_code == 200
    record = DeliveryRecord.model_validate_json(answer.content)
    assert record.attempts[0].http_status == 410
    assert answer.json()["attempts"][0]["response_excerpt"] == "gone \ufffd"
    assert answer.json()["attempts"][0]["hint"] == "It says that it is gone for good."


async def test_a_canceled_delivery_says_why(world: World, http: httpx2.AsyncClient) -> None:
    canceled = {"status": DeliveryStatus.CANCELED, "finished_at": NOW}
    discarded = a_delivery(**canceled, discard_reason="receiver is gone")
    removed = a_delivery(**canceled, reason=None)
    world.webhooks.rows = [(discarded, []), (removed, [])]

    seen = [(await http.get(f"/v1/webhooks/deliveries/{one.id}")).json() for one in (discarded, removed)]

    assert [(one["discard_reason"], one["what_next"]) for one in seen] == [
        ("receiver is gone", "It was discarded."),
        (None, "It was canceled when its endpoint was removed."),
    ]


@pytest.mark.parametrize("delivery_id", ["dlv_00000000000000000000000000", "x", "%00"])
async def test_a_delivery_that_is_not_there_is_404(http: httpx2.AsyncClient, delivery_id: str) -> None:
    assert (await http.get(f"/v1/webhooks/deliveries/{delivery_id}")).status_code == 404


async def test_a_delivery_of_another_account_is_404(world: World) -> None:
    delivery = a_delivery()
    world.webhooks.rows = [(delivery, [])]
    async with world.client(account="other") as http:
        assert (await http.get(f"/v1/webhooks/deliveries/{delivery.id}")).status_code == 404


async def test_dead_letters_come_in_groups_and_by_group(world: World, http: httpx2.AsyncClient) -> None:
    group = DeadGroup(
        id="ep_1.refused",
        endpoint_id="ep_1",
        url="https://example.com/hook",
        reason=DeadReason.REFUSED,
        count=2,
        oldest=NOW - timedelta(hours=1),
        newest=NOW,
        last_http_status=410,
        last_error=None,
    )
    world.webhooks.groups = [group]
    world.webhooks.rows = [(a_delivery(), []) for _ in range(2)]
    groups = (await http.get(DEAD_LETTERS)).json()
    assert DeadGroupView.model_validate(groups["items"][0]).count == 2
    assert groups["next_cursor"] is None
    letters = (await http.get(f"{DEAD_LETTERS}?group=ep_1.refused&limit=1")).json()
    assert letters["items"][0]["delivery_id"] == world.webhooks.rows[0][0].id
    rest = (await http.get(f"{DEAD_LETTERS}?group=ep_1.refused&cursor={letters['next_cursor']}")).json()
    assert [one["delivery_id"] for one in rest["items"]] == [world.webhooks.rows[1][0].id]
    assert world.webhooks.asked == [DeadFilter(group="ep_1.refused")] * 2


async def test_a_dry_run_counts_and_a_paced_redrive_sends(world: World, http: httpx2.AsyncClient) -> None:
    world.webhooks.rows = [(a_delivery(), [])] * 3
    dry = await http.post(f"{DEAD_LETTERS}/redrive", json={"endpoint_id": "ep_1", "dry_run": True})
    assert (dry.status_code, dry.json()) == (200, {"matched": 3, "redriven": 0})
    body = {"since": "2026-11-30T13:00:00+01:00", "rate_per_second": 4}
    sent = await http.post(f"{DEAD_LETTERS}/redrive", json=body)
    assert sent.json() == {"matched": 3, "redriven": 3}
    since = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert world.webhooks.asked == [DeadFilter(endpoint_id="ep_1"), DeadFilter(since=since), 0.25]


@pytest.mark.parametrize(
    ("call", "body", "pointer"),
    [
        ("redrive", {}, ""),
        ("redrive", {"dry_run": True}, ""),
        ("redrive", {"delivery_ids": []}, "/delivery_ids"),
        ("redrive", {"delivery_ids": [1]}, "/delivery_ids/0"),
        ("redrive", {"since": "now"}, "/since"),
        ("redrive", {"since": "0001-01-01T00:00:00+14:00"}, "/since"),
        ("redrive", {"since": "9999-12-31T23:59:59-14:00"}, "/since"),
        ("redrive", {"group": "g", "rate_per_second": 0}, "/rate_per_second"),
        ("redrive", {"group": "g", "rate_per_second": 1e-12}, "/rate_per_second"),
        ("redrive", {"group": "g", "rate_per_second": "4"}, "/rate_per_second"),
        ("redrive", {"group": "g", "rate_per_second": True}, "/rate_per_second"),
        ("redrive", {"group": "g", "all": True}, "/all"),
        ("redrive", [], ""),
        ("discard", {"delivery_ids": ["dlv_1"]}, "/reason"),
        ("discard", {"delivery_ids": ["dlv_1"], "reason": ""}, "/reason"),
        ("discard", {"reason": "old"}, "/delivery_ids"),
    ],
)
async def test_a_wish_that_is_not_clear_is_422(
    http: httpx2.AsyncClient, call: str, body: Any, pointer: str
) -> None:
    answer = await http.post(f"{DEAD_LETTERS}/{call}", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_an_infinite_rate_is_422(http: httpx2.AsyncClient) -> None:
    body = b'{"group": "g", "rate_per_second": 1e999}'
    headers = {"Content-Type": "application/json"}
    answer = await http.post(f"{DEAD_LETTERS}/redrive", content=body, headers=headers)
    assert answer.status_code == 422


async def test_letters_are_given_up_with_a_reason(world: World, http: httpx2.AsyncClient) -> None:
    body = {"delivery_ids": ["dlv_1", "dlv_2"], "reason": "receiver is gone"}
    answer = await http.post(f"{DEAD_LETTERS}/discard", json=body)
    assert (answer.status_code, answer.json()) == (200, {"discarded": 2})
    assert world.webhooks.asked == [(DeadFilter(delivery_ids=("dlv_1", "dlv_2")), "receiver is gone")]
