"""Which events a registered endpoint gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tempa.core.events import FAMILIES, OPERATOR_EVENTS, Event
from tempa.webhooks.fanout import plan
from tempa.webhooks.filters import EVENT_FILTERS
from tempa.webhooks.model import Subscription
from tests.unit.webhooks.samples import NOW

KINDS = ("job.started", "job.completed", "job.failed", "job.canceled")


def a_job_event(kind: str = "job.completed", family: str = "cad_generation", **changes: Any) -> Event:
    announce: dict[str, Any] = {
        "family": family,
        "webhook_url": None,
        "webhook_events": [],
        "data": {"job_id": "cad_1", "tags": {}},
        "links": {"step": ["cad_1", "model.step"]},
    }
    event = Event(
        id="evt_1", account="a", job_id="cad_1", sequence=3, type=kind, at=NOW, body={}, announce=announce
    )
    return replace(event, **changes)


def an_operator_event(kind: str = "endpoint.opened") -> Event:
    return Event(
        id="evt_2",
        account="a",
        job_id=None,
        sequence=None,
        type=kind,
        at=NOW,
        body={},
        announce={"data": {"endpoint_id": "ep_9"}},
    )


def gets(event: Event, *asked: str, account: str = "a") -> bool:
    """Whether an endpoint that asks for these (none: the default) gets the event."""
    (*found,) = plan(event, [Subscription("ep_1", account, asked or None)]).deliveries
    assert all((one.endpoint_id, one.url) == ("ep_1", None) for one in found)
    return len(found) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_is_how_jobs_end_whatever_their_family(family: str) -> None:
    assert [gets(a_job_event(kind, family)) for kind in KINDS] == [False, True, True, True]


def test_a_name_means_one_event_of_one_family() -> None:
    asked = "cad_generation.failed"
    assert [gets(a_job_event(kind), asked) for kind in KINDS] == [False, False, True, False]
    assert not gets(a_job_event("job.failed", "conversion"), asked)


def test_job_names_stand_for_every_family() -> None:
    for family in FAMILIES:
        assert gets(a_job_event("job.started", family), "job.started")
        assert not gets(a_job_event("job.failed", family), "job.started")
        assert all(gets(a_job_event(kind, family), "job.*") for kind in KINDS)


def test_a_star_means_all_of_a_family() -> None:
    assert all(gets(a_job_event(kind), "cad_generation.*") for kind in KINDS)
    assert not any(gets(a_job_event(kind, "inspection"), "cad_generation.*") for kind in KINDS)


@pytest.mark.parametrize("kind", OPERATOR_EVENTS)
def test_operator_events_go_to_who_names_them(kind: str) -> None:
    event = an_operator_event(kind)
    assert gets(event, kind)
    assert gets(event, "job.failed", kind.partition(".")[0] + ".*")
    assert not gets(event)
    assert not gets(event, "job.*")


def test_an_operator_event_keeps_its_name_and_is_about_no_job() -> None:
    (delivery,) = plan(an_operator_event(), [Subscription("ep_1", "a", ("endpoint.opened",))]).deliveries
    message = delivery.message
    assert (message.type, message.job_id, message.links) == ("endpoint.opened", None, {})
    assert message.data == {"endpoint_id": "ep_9"}


def test_another_accounts_endpoint_gets_nothing() -> None:
    assert not gets(a_job_event(), account="b")
    assert not gets(an_operator_event(), "endpoint.opened", account="b")


def test_what_is_not_announced_goes_nowhere() -> None:
    for event in (a_job_event("job.stage"), a_job_event(announce=None), a_job_event("job.queued")):
        assert not gets(event, *EVENT_FILTERS)


def test_the_jobs_url_and_each_endpoint_get_a_delivery_of_one_event() -> None:
    event = a_job_event()
    assert event.announce is not None
    event = replace(event, announce={**event.announce, "webhook_url": "https://hooks.example/"})
    subscriptions = [Subscription(f"ep_{number}", "a", None) for number in range(3)]

    made = plan(event, subscriptions).deliveries

    assert [(one.url, one.endpoint_id) for one in made] == [
        ("https://hooks.example/", None),
        (None, "ep_0"),
        (None, "ep_1"),
        (None, "ep_2"),
    ]
    assert len({one.id for one in made}) == 4
    assert {one.message.id for one in made} == {"evt_1"}


def test_every_filter_means_something() -> None:
    families = {name.partition(".")[0] for name in EVENT_FILTERS}
    assert families == {*FAMILIES, "job", "gpu_rental", "payment", "endpoint", "delivery"}
    assert len(EVENT_FILTERS) == len(set(EVENT_FILTERS))
