"""Ids order by time and cannot be guessed; times keep their milliseconds."""

from __future__ import annotations

import os
import select
import signal
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core import ids
from tempa.core.clock import SystemClock, from_ms, rfc3339, to_ms
from tempa.core.ids import is_id, new_id

PATIENCE_SECONDS = 10.0


def test_ids_of_one_process_never_go_back_and_never_repeat() -> None:
    made = [new_id("cad") for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_neighbouring_ids_lie_an_unguessable_step_apart() -> None:
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    made = [new_id("evt").partition("_")[2] for _ in range(2_000)]
    values = [
        sum(alphabet.index(digit) * 32**place for place, digit in enumerate(reversed(text))) for text in made
    ]
    steps = [after - before for before, after in pairwise(values)]
    assert sorted(steps)[len(steps) // 100] > 2**60  # a counter would step by 1


def test_a_forked_child_draws_other_random_bits_than_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both go on from the same memory. The last 16 digits of a fresh id are the random bits."""
    new_id("evt")  # bytes are at hand
    monkeypatch.setattr(ids, "_last", 0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_id("evt").encode())
        os._exit(0)
    ours = new_id("evt")
    os.close(writing)
    with os.fdopen(reading) as line:
        theirs = line.read()
    os.waitpid(child, 0)

    assert is_id(theirs, "evt")
    assert theirs[-16:] != ours[-16:]


def test_a_child_that_is_forked_while_an_id_is_being_made_makes_its_own() -> None:
    reading, writing = os.pipe()
    with ids._lock:
        child = os.fork()
        if child == 0:
            os.write(writing, new_id("evt").encode())
            os._exit(0)
    os.close(writing)
    heard, _, _ = select.select([reading], [], [], PATIENCE_SECONDS)
    if not heard:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as line:
        assert is_id(line.read(), "evt")


def test_an_id_says_its_kind_and_nothing_else_passes_for_one() -> None:
    job_id = new_id("cad")
    assert is_id(job_id)
    assert is_id(job_id, "cad", "conv")
    assert not is_id(job_id, "evt")
    assert not any(
        is_id(text) for text in ("", "cad_", job_id + "x", job_id.upper(), "../" + job_id, "cad_" + "l" * 26)
    )


@given(st.integers(0, 253_402_300_799_999))
def test_milliseconds_survive_the_way_through_datetime(milliseconds: int) -> None:
    assert to_ms(from_ms(milliseconds)) == milliseconds


def test_times_are_written_in_utc_with_z() -> None:
    jakarta = timezone(timedelta(hours=7))
    at = datetime(2026, 11, 30, 19, 0, 0, 5_000, tzinfo=jakarta)
    assert rfc3339(at) == "2026-11-30T12:00:00.005Z"


def test_the_wall_clock_is_utc_and_cut_to_the_millisecond() -> None:
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0
