"""Following a job's log: every event once and in order, however often the stream breaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tempa.client.effects import Answer, Lost, Message
from tempa.client.errors import NotReachable, TempaProblem
from tempa.client.events import follow

if TYPE_CHECKING:
    from tests.unit.client.conftest import World

OPENED = Answer(200, {"content-type": "text/event-stream; charset=utf-8"})
CUT = Lost("connection reset", sent=True)
GONE = Lost("connection refused", sent=False)
END = None


def event(sequence: int, kind: str) -> Message:
    body = {"sequence": sequence, "type": f"job.{kind}", "at": "2026-01-01T00:00:00Z", "job_id": "cad_1"}
    return Message(f"job.{kind}", json.dumps(body))


def progress(fraction: float) -> Message:
    return Message("progress", json.dumps({"job_id": "cad_1", "stage": "meshing", "fraction": fraction}))


def told(world: World) -> list[tuple[int | None, str]]:
    return [(event.sequence, event.type) for event in world.emitted]


ALL = [(1, "job.queued"), (2, "job.started"), (3, "job.completed")]


def test_the_log_is_told_to_its_end(world: World) -> None:
    world.run(
        follow("cad_1", 0, world.pace, 60),
        OPENED,
        event(1, "queued"),
        event(2, "started"),
        event(3, "completed"),
    )

    assert told(world) == ALL
    assert "Last-Event-ID" not in world.calls[0].headers
    assert [event.terminal for event in world.emitted] == [False, False, True]
    assert world.emitted[0].body["job_id"] == "cad_1"


def test_a_broken_stream_is_resumed_behind_the_last_event(world: World) -> None:
    world.run(
        follow("cad_1", 0, world.pace, 60),
        *(OPENED, event(1, "queued"), CUT),
        *(OPENED, event(2, "started"), END),  # a server that shuts down ends its streams cleanly
        *(GONE, Answer(503, {"retry-after": "4"}), OPENED, event(3, "completed")),
    )

    assert told(world) == ALL
    assert [call.headers.get("Last-Event-ID") for call in world.calls] == [None, "1", "2", "2", "2"]
    assert world.pauses == [0.25, 4.5]


def test_what_was_told_is_not_told_again(world: World) -> None:
    """A server, or a proxy, that starts again from the beginning does no harm."""
    world.run(
        follow("cad_1", 0, world.pace, 60),
        *(OPENED, event(1, "queued"), event(2, "started"), CUT),
        *(OPENED, event(1, "queued"), event(2, "started"), event(3, "completed")),
    )

    assert told(world) == ALL


def test_one_may_begin_in_the_middle(world: World) -> None:
    world.run(follow("cad_1", 2, world.pace, 60), OPENED, event(3, "completed"))

    assert world.calls[0].headers["Last-Event-ID"] == "2"
    assert told(world) == [(3, "job.completed")]


def test_news_of_progress_has_no_number(world: World) -> None:
    world.run(follow("cad_1", 2, world.pace, 60), OPENED, progress(0.5), event(3, "completed"))

    assert told(world) == [(None, "progress"), (3, "job.completed")]
    assert world.emitted[0].body["fraction"] == 0.5


@pytest.mark.parametrize("data", ["", "{", "[]", '{"type": "job.new"}', '{"sequence": "3"}'])
def test_what_only_a_newer_server_says_is_passed_over(world: World, data: str) -> None:
    world.run(follow("cad_1", 2, world.pace, 60), OPENED, Message("job.new", data), event(3, "completed"))

    assert told(world) == [(3, "job.completed")]


def test_behind_the_end_of_an_ended_job_there_is_nothing_to_wait_for(world: World) -> None:
    world.run(follow("cad_1", 3, world.pace, 60), Answer(204, {}))

    assert told(world) == []


def test_streams_that_say_nothing_new_are_tried_again_with_growing_pauses(world: World) -> None:
    world.run(
        follow("cad_1", 2, world.pace, 60),
        *(OPENED, CUT),
        *(OPENED, progress(0.5), END),
        *(OPENED, event(2, "started"), CUT),
        *(OPENED, event(3, "stage"), CUT),
        *(OPENED, END),
        *(OPENED, event(4, "completed")),
    )

    assert told(world) == [(None, "progress"), (3, "job.stage"), (4, "job.completed")]
    assert world.pauses == [0.25, 0.5, 1.0, 0.25]


def test_a_job_that_is_not_there_is_told_at_once(world: World) -> None:
    with pytest.raises(TempaProblem) as caught:
        world.run(follow("cad_1", 0, world.pace, 60), Answer(404, {}))

    assert caught.value.status == 404


def test_a_server_that_was_never_there_is_not_waited_for(world: World) -> None:
    with pytest.raises(NotReachable):
        world.run(follow("cad_1", 0, world.pace, 1), GONE, GONE, GONE)


def test_a_page_that_is_no_stream_is_not_read_as_one(world: World) -> None:
    with pytest.raises(TempaProblem, match="not as Tempa does"):
        world.run(follow("cad_1", 0, world.pace, 60), Answer(200, {"content-type": "text/html"}))
