"""Marks: a look begins where the last one ended, a moment earlier, and once a second at the front."""

from __future__ import annotations

import contextlib

from tempa.adapters.stores.commands.flow import Moment, Timed
from tempa.adapters.stores.postgres.queues import (
    FROM_THE_FRONT_SECONDS,
    LATE_SECONDS,
    EventMark,
    Queue,
    Queues,
)

ROW = {"lane": "cpu", "account": "acme", "priority": 5, "run_at": 10_000, "number": 7}


class Seconds:
    """Time that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_look_for_events_is_from_the_front_and_then_one_a_second() -> None:
    time = Seconds()
    mark = EventMark(time)
    mark.reached(50)
    time.now += LATE_SECONDS
    looks = [mark.number(), mark.number()]
    time.now += FROM_THE_FRONT_SECONDS
    looks += [mark.number(), mark.number()]

    assert looks == [0, 50, 0, 50]


def test_what_was_placed_a_moment_ago_is_looked_at_again() -> None:
    time = Seconds()
    mark = EventMark(time)
    mark.number()
    mark.reached(50)
    time.now += LATE_SECONDS * 0.6
    mark.reached(60)
    early = mark.number()
    time.now += LATE_SECONDS * 0.6
    first = mark.number()
    time.now += LATE_SECONDS * 0.6
    both = mark.number()

    assert (early, first, both) == (0, 50, 60)


def test_a_mark_never_goes_back_for_what_is_placed_late() -> None:
    time = Seconds()
    mark = EventMark(time)
    mark.number()
    mark.reached(50)
    mark.reached(30)
    time.now += LATE_SECONDS

    assert mark.number() == 50


def _look(queues: Queues) -> dict[str, int]:
    asked = next(queues.line(["cpu"], 1))
    assert isinstance(asked, Timed)
    assert asked.ask.rows
    (row,) = asked.ask.rows
    return {"run_at": row["run_at"], "number": row["number"]}


def test_a_clock_that_was_set_back_forgets_the_marks() -> None:
    time = Seconds()
    queues = Queues(time)
    queues.opened([Queue("cpu", "acme", 5)])
    nobody = {"id": None, "now": 0, "queues": 1, "account": None, "weight": 1.0, "room": None}

    def claim_at(now: int) -> list[tuple[int, int]]:
        """Where it looks, time by time."""
        flow = queues.line(["cpu"], 1)
        asked, looks = next(flow), []
        with contextlib.suppress(StopIteration):
            while True:
                assert isinstance(asked, Timed)
                assert asked.ask.rows
                looks += [(row["run_at"], row["number"]) for row in asked.ask.rows]
                asked = flow.send(([nobody], Moment(now, now)))
        return looks

    claim_at(20_000)
    queues.took([ROW])
    time.now += LATE_SECONDS
    looks = [claim_at(20_000), claim_at(19_999), claim_at(19_999)]

    assert looks == [[(10_000, 7)], [(10_000, 7), (0, 0)], [(0, 0)]]


def test_a_claim_looks_from_the_last_job_it_took_a_moment_ago() -> None:
    time = Seconds()
    queues = Queues(time)
    queues.opened([Queue("cpu", "acme", 5)])
    looks = [_look(queues)]
    queues.took([ROW])
    looks.append(_look(queues))
    time.now += LATE_SECONDS
    looks.append(_look(queues))
    time.now += FROM_THE_FRONT_SECONDS
    looks += [_look(queues), _look(queues)]

    front, marked = {"run_at": 0, "number": 0}, {"run_at": 10_000, "number": 7}
    assert looks == [front, front, marked, front, marked]
