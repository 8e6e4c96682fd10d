"""Which events become deliveries, under which names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tempa.core.events import Event
from tempa.webhooks.fanout import plan

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def an_event(kind: str, url: str | None = "https://example.com/", events: tuple[str, ...] = ()) -> Event:
    announce: dict[str, Any] = {
        "family": "cad_generation",
        "webhook_url": url,
        "webhook_events": list(events),
        "data": {"job_id": "cad_1", "status": "x", "model": "m", "tags": {}},
        "links": {"step": ["cad_1", "model.step"]},
        "traceparent": TRACE,
    }
    return Event(
        id="evt_1", account="a", job_id="cad_1", sequence=3, type=kind, at=NOW, body={}, announce=announce
    )


def named(event: Event) -> list[str]:
    return [delivery.message.type for delivery in plan(event).deliveries]


@pytest.mark.parametrize("verb", ["completed", "failed", "canceled"])
def test_the_terminal_three_are_the_default_under_the_familys_name(verb: str) -> None:
    assert named(an_event(f"job.{verb}")) == [f"cad_generation.{verb}"]


def test_started_is_sent_only_when_asked_for() -> None:
    assert named(an_event("job.started")) == []
    assert named(an_event("job.started", events=("cad_generation.started",))) == ["cad_generation.started"]


def test_job_names_are_aliases_for_subscribing_and_the_body_keeps_the_family() -> None:
    assert named(an_event("job.completed", events=("job.completed",))) == ["cad_generation.completed"]
    assert named(an_event("job.failed", events=("job.completed",))) == []
    assert named(an_event("job.completed", events=("3d_reconstruction.completed",))) == []


def test_no_url_no_delivery_and_stages_are_nobodys_business() -> None:
    assert named(an_event("job.completed", url=None)) == []
    for kind in ("job.queued", "job.stage", "job.retrying"):
        assert named(an_event(kind)) == []


def test_the_webhook_id_is_the_events() -> None:
    (delivery,) = plan(an_event("job.completed")).deliveries
    assert delivery.message.id == "evt_1"
    assert delivery.message.traceparent == TRACE
    assert delivery.message.links == {"step": ("cad_1", "model.step")}
