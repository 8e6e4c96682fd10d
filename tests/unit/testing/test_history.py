"""Each rule notices the history that breaks it, and a good history breaks none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing import invariants
from tempa.testing.history import (
    Bytes,
    FeedLine,
    History,
    Hook,
    Kept,
    Line,
    Look,
    Observation,
    Published,
    Removed,
    Ticket,
)
from tempa.testing.invariants import RULES, faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

A, B, C = "cad_a", "cad_b", "cad_c"
UNTIL = 1000.0


def look(job_id: str, at: float, **seen: Any) -> Look:
    fields: dict[str, Any] = {"code": 200, "retained_until": UNTIL, **seen}
    return Look(job_id=job_id, at=at, **fields)


A_END = look(A, 9.0, status="completed", sequence=5, attempt=2)
B_END = look(B, 9.0, status="canceled", sequence=2, attempt=0)
LOG = (
    Line(job_id=A, sequence=1, type="job.queued"),
    Line(job_id=A, sequence=2, type="job.started", attempt=1),
    Line(job_id=A, sequence=3, type="job.retrying", attempt=1),
    Line(job_id=A, sequence=4, type="job.started", attempt=2),
    Line(job_id=A, sequence=5, type="job.completed"),
    Line(job_id=B, sequence=1, type="job.queued"),
    Line(job_id=B, sequence=2, type="job.canceled"),
)
FEED = tuple(
    FeedLine(reader="r", position=10 + 2 * place, job_id=line.job_id, sequence=line.sequence)
    for place, line in enumerate(LOG)
)
GOOD: tuple[Observation, ...] = (
    Ticket(key="a", job_id=A, at=0.5, replayed=False, hooked=True),
    look(A, 1.0, status="queued", sequence=1, attempt=0),
    Ticket(key="b", job_id=B, at=2.0, replayed=False, hooked=True),
    Ticket(key="a", job_id=A, at=3.0, replayed=True, hooked=True),
    A_END,
    *LOG,
    *LOG,  # read by two
    *FEED,
    Hook(webhook_id="evt_a", job_id=A, type="completed"),
    Hook(webhook_id="evt_a", job_id=A, type="completed"),
    Hook(webhook_id="evt_b", job_id=B, type="canceled"),
    A_END,
    B_END,
    Kept(job_id=A, epoch=1),  # by the attempt that lost
    Kept(job_id=A, epoch=2),
    Published(job_id=A, name="model.step", epoch=2, sha256="ab"),
    Bytes(job_id=A, name="model.step", sha256="ab"),
)


def test_a_good_history_has_no_faults() -> None:
    assert faults(GOOD) == []
    assert faults(()) == []


def without(*gone: Observation) -> Sequence[Observation]:
    return [one for one in GOOD if one not in gone]


def swapped(old: Observation, **changes: Any) -> Sequence[Observation]:
    assert old in GOOD
    return [replace(one, **changes) if one == old else one for one in GOOD]


def and_then(*more: Observation) -> Sequence[Observation]:
    return [*GOOD, *more]


A_PUBLISHED = Published(job_id=A, name="model.step", epoch=2, sha256="ab")
A_BYTES = Bytes(job_id=A, name="model.step", sha256="ab")
BROKEN: dict[str, tuple[Callable[..., Any], Sequence[Observation]]] = {
    "a ticket is forgotten": (invariants.every_ticket_stands, and_then(Look(job_id=A, code=404, at=10.0))),
    "a job is gone too early": (invariants.every_ticket_stands, and_then(Look(job_id=A, code=410, at=999.0))),
    "nobody looked again": (
        invariants.every_ticket_stands,
        and_then(Ticket(key="c", job_id=C, at=4.0, replayed=False, hooked=False)),
    ),
    "a key has two jobs": (
        invariants.one_key_one_job,
        and_then(Ticket(key="a", job_id=B, at=UNTIL - 1, replayed=True, hooked=True)),
    ),
    "a job is new twice": (
        invariants.one_key_one_job,
        and_then(Ticket(key="a", job_id=A, at=0.5, replayed=False, hooked=True)),
    ),
    "a job never ends": (
        invariants.every_job_ends,
        swapped(B_END, status="processing", attempt=0),
    ),
    "an end is taken back": (
        invariants.terminal_is_final,
        and_then(look(A, 10.0, status="failed", sequence=5, attempt=2)),
    ),
    "an ended job is claimed again": (
        invariants.terminal_is_final,
        and_then(look(A, 10.0, status="completed", sequence=6, attempt=3)),
    ),
    "two ends are told": (
        invariants.one_terminal_event,
        and_then(Line(job_id=A, sequence=6, type="job.failed")),
    ),
    "no end is told": (invariants.one_terminal_event, without(LOG[4])),
    "an end is told as another": (invariants.one_terminal_event, swapped(LOG[6], type="job.failed")),
    "an event follows the end": (
        invariants.one_terminal_event,
        and_then(Line(job_id=B, sequence=3, type="job.stage")),
    ),
    "a number is left out": (invariants.sequences_have_no_gaps, without(LOG[2])),
    "a number has two events": (
        invariants.sequences_have_no_gaps,
        and_then(Line(job_id=A, sequence=3, type="job.stage")),
    ),
    "an event is not counted": (
        invariants.sequences_have_no_gaps,
        [replace(one, sequence=4) if one == A_END else one for one in GOOD],
    ),
    "an epoch is claimed twice": (invariants.one_claim_an_epoch, swapped(LOG[3], attempt=1)),
    "an attempt is not on record": (
        invariants.one_claim_an_epoch,
        [replace(one, attempt=3) if one == A_END else one for one in GOOD],
    ),
    "files of a run that nobody claimed": (
        invariants.no_run_without_a_claim,
        and_then(Kept(job_id=B, epoch=1)),
    ),
    "a zombie publishes": (invariants.the_winner_publishes, swapped(A_PUBLISHED, epoch=1)),
    "two attempts publish": (
        invariants.the_winner_publishes,
        and_then(replace(A_PUBLISHED, name="model.stl", epoch=1)),
    ),
    "a completed job has no files": (invariants.the_winner_publishes, without(A_PUBLISHED)),
    "a canceled job has files": (
        invariants.the_winner_publishes,
        and_then(replace(A_PUBLISHED, job_id=B, epoch=0)),
    ),
    "bytes are other bytes": (invariants.bytes_are_as_told, swapped(A_BYTES, sha256="cd")),
    "bytes are lost": (invariants.bytes_are_as_told, without(A_BYTES)),
    "an end is told twice": (
        invariants.each_end_is_told_once,
        and_then(Hook(webhook_id="evt_a2", job_id=A, type="completed")),
    ),
    "an end never arrives": (
        invariants.each_end_is_told_once,
        without(Hook(webhook_id="evt_b", job_id=B, type="canceled")),
    ),
    "a webhook tells of another end": (
        invariants.each_end_is_told_once,
        swapped(Hook(webhook_id="evt_b", job_id=B, type="canceled"), type="completed"),
    ),
    "one webhook-id tells of two jobs": (
        invariants.each_end_is_told_once,
        swapped(Hook(webhook_id="evt_b", job_id=B, type="canceled"), webhook_id="evt_a"),
    ),
    "the feed goes back": (invariants.the_feed_goes_on, swapped(FEED[3], position=11)),
    "the feed stands still": (invariants.the_feed_goes_on, swapped(FEED[1], position=10)),
    "the feed misses an event": (invariants.the_feed_misses_nothing, without(FEED[2])),
    "the feed repeats an event": (
        invariants.the_feed_misses_nothing,
        and_then(replace(FEED[2], position=99)),
    ),
}


@pytest.mark.parametrize(("rule", "broken"), BROKEN.values(), ids=BROKEN.keys())
def test_a_rule_notices_what_breaks_it(rule: Callable[..., Any], broken: Sequence[Observation]) -> None:
    assert rule.__name__ in {fault.rule for fault in faults(broken)}


def test_every_rule_has_a_history_that_breaks_it() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(RULES)


def test_what_is_over_may_be_gone() -> None:
    over = and_then(Look(job_id=A, code=410, at=UNTIL))
    assert faults([one for one in over if not isinstance(one, (Published, Bytes))]) == []
    assert faults([*without(A_BYTES), Removed(job_id=A)]) == []
    assert faults(and_then(Ticket(key="a", job_id=B, at=UNTIL, replayed=True, hooked=True))) == []


def test_a_history_that_was_kept_is_judged_as_the_one_that_was_written(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    for one in GOOD:
        history.append(one)

    assert list(History.read(tmp_path / "history.jsonl")) == list(history) == list(GOOD)
