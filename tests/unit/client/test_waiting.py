"""Waiting for a job: it ends with the job or with its own time, and with nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.client.effects import Answer, Lost
from tempa.client.errors import JobCanceled, JobFailed, NotAuthorized, NotReachable, WaitTimeout
from tempa.client.waiting import wait

if TYPE_CHECKING:
    from tempa.jobs.wire import JobView
    from tests.unit.client.conftest import World

GONE = Lost("connection refused", sent=False)
BROKEN = Lost("connection reset", sent=True)


def seen(status: str, sequence: int, **fields: Any) -> Answer:
    """A look at a job."""
    view = {
        "job_id": "cad_1",
        "status": status,
        "created_at": "2026-01-01T00:00:00Z",
        "engine": "opencascade-brep",
        "sequence": sequence,
        "attempt": 1,
        "cached": False,
        "progress": {"stage": status},
        "compute_time_ms": 0,
        "peak_rss_bytes": 0,
        "retained_until": "2026-02-01T00:00:00Z",
        "tags": {},
        **fields,
    }
    return Answer(200, {"etag": f'W/"{sequence}"'}, json.dumps(view).encode())


def unchanged(sequence: int, **headers: str) -> Answer:
    return Answer(304, {"etag": f'W/"{sequence}"', **headers})


class TestAnEnd:
    def test_a_completed_job_is_returned(self, world: World) -> None:
        view = world.run(wait("cad_1", None, world.pace, 60), seen("completed", 4))

        assert (view.job_id, view.status, view.sequence) == ("cad_1", "completed", 4)

    def test_a_failed_job_raises_what_the_job_says(self, world: World) -> None:
        error = {
            "code": "FILLET_FAILED",
            "message": "The fillet could not be built.",
            "retryable": False,
            "hint": "Lower it.",
            "detail": {"feature": "rim"},
        }

        with pytest.raises(JobFailed) as caught:
            world.run(wait("cad_1", None, world.pace, 60), seen("failed", 4, error=error))

        failed = caught.value
        assert (failed.code, failed.message, failed.retryable) == (error["code"], error["message"], False)
        assert (failed.hint, failed.detail, failed.job.job_id) == ("Lower it.", {"feature": "rim"}, "cad_1")

    def test_a_code_that_only_a_newer_server_knows_is_told_too(self, world: World) -> None:
        error = {"code": "FROM_THE_FUTURE", "message": "New.", "retryable": True}

        with pytest.raises(JobFailed) as caught:
            world.run(wait("cad_1", None, world.pace, 60), seen("failed", 4, error=error))

        assert (caught.value.code, caught.value.retryable) == ("FROM_THE_FUTURE", True)

    def test_a_canceled_job_raises(self, world: World) -> None:
        with pytest.raises(JobCanceled) as caught:
            world.run(wait("cad_1", None, world.pace, 60), seen("canceled", 2))

        assert caught.value.job.status == "canceled"


def test_the_server_is_asked_to_hold_and_told_what_is_known(world: World) -> None:
    world.run(
        wait("cad_1", None, world.pace, 60), seen("queued", 1), seen("processing", 2), seen("completed", 3)
    )

    first, *held = world.calls
    assert first.query == {}
    assert [call.query for call in held] == [{"wait": "30"}, {"wait": "30"}]
    assert [call.headers["If-None-Match"] for call in held] == ['W/"1"', 'W/"2"']
    assert all(call.silence_seconds > 30 for call in held)  # the silence that was asked for is no fault
    assert world.pauses == []


def test_holds_that_pass_without_news_go_on_at_once(world: World) -> None:
    held = world.after(30, unchanged(1))

    world.run(wait("cad_1", None, world.pace, 60), seen("queued", 1), held, held, seen("completed", 2))

    assert world.pauses == []


def test_a_server_that_does_not_hold_is_not_hammered(world: World) -> None:
    """Behind a proxy that answers 304 by itself the wait must not become a busy loop."""
    world.run(
        wait("cad_1", None, world.pace, 60),
        seen("queued", 1),
        unchanged(1),
        unchanged(1, **{"retry-after": "5"}),
        seen("queued", 1),
        seen("completed", 2),
    )

    assert world.pauses == [1.0, 5.0, 1.0]


def test_a_server_that_holds_for_less_is_asked_for_less(world: World) -> None:
    fault = {"pointer": "/wait", "message": "Must be a number of seconds from 0 to 10.", "limit": 10}
    refusal = {
        "type": "urn:tempa:problem:invalid-request",
        "detail": "The request is not valid.",
        "errors": [fault],
    }

    world.run(
        wait("cad_1", None, world.pace, 60),
        seen("queued", 1),
        Answer(422, {}, json.dumps(refusal).encode()),
        seen("completed", 2),
    )

    assert [call.query.get("wait") for call in world.calls] == [None, "30", "10"]


def test_an_hour_without_the_server_is_survived(world: World) -> None:
    outage: list[Answer | Lost] = [
        GONE,
        BROKEN,
        Answer(502, {}),
        Answer(503, {"retry-after": "3600"}),
        Answer(504, {}),
        GONE,
    ]

    view = world.run(
        wait("cad_1", None, world.pace, 60), seen("processing", 2), *outage, seen("completed", 3)
    )

    assert view.status == "completed"
    assert world.seconds > 3600
    assert world.calls[-1].headers["If-None-Match"] == 'W/"2"'  # what was known is not forgotten


def test_a_server_that_was_never_there_is_not_waited_for(world: World) -> None:
    with pytest.raises(NotReachable):
        world.run(wait("cad_1", None, world.pace, 2), GONE, GONE, GONE, GONE)

    assert world.seconds <= 2


def test_the_wait_ends_in_its_own_time(world: World) -> None:
    with pytest.raises(WaitTimeout, match="still processing after 40 s") as caught:
        world.run(
            wait("cad_1", 40, world.pace, 60),
            seen("queued", 1),
            world.after(30, seen("processing", 2)),
            world.after(10, unchanged(2)),
        )

    assert [call.query.get("wait") for call in world.calls] == [None, "30", "10"]
    assert caught.value.job.status == "processing"
    assert isinstance(caught.value, TimeoutError)


def test_a_job_that_ends_with_the_wait_is_returned(world: World) -> None:
    view = world.run(
        wait("cad_1", 30, world.pace, 60), seen("queued", 1), world.after(31, seen("completed", 2))
    )

    assert view.status == "completed"


def test_an_outage_at_the_end_of_the_wait_is_told(world: World) -> None:
    with pytest.raises(NotReachable):
        world.run(wait("cad_1", 3, world.pace, 60), seen("queued", 1), GONE, GONE, GONE, GONE)


def test_a_key_that_is_revoked_meanwhile_ends_the_wait(world: World) -> None:
    with pytest.raises(NotAuthorized):
        world.run(wait("cad_1", None, world.pace, 60), seen("queued", 1), Answer(401, {}))


def test_each_view_of_the_job_is_shown(world: World) -> None:
    views: list[JobView] = []

    world.run(
        wait("cad_1", None, world.pace, 60, views.append),
        seen("queued", 1),
        seen("processing", 2),
        seen("completed", 3),
    )

    assert [view.status for view in views] == ["queued", "processing", "completed"]
