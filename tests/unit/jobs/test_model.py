"""The state machine: terminal is final, and nothing happens that the table does not name."""

from __future__ import annotations

import itertools
import random

import pytest

from tempa.core.errors import CODES, TempaError
from tempa.core.events import JOB_EVENTS, TERMINAL_EVENTS
from tempa.jobs.model import STATUS_AFTER_EVENT, TRANSITIONS, Failed, Job, Retried, Status, Step, Usage
from tempa.jobs.perform import CRASH_CODES, after_failure
from tests.unit.jobs.samples import a_job


def test_terminal_is_final() -> None:
    for status, step in itertools.product(Status, Step):
        if status.terminal:
            assert (status, step) not in TRANSITIONS


def test_the_contracts_arrows_and_no_others() -> None:
    arrows = {(before, after) for (before, _), (after, _) in TRANSITIONS.items()}
    assert arrows == {
        (Status.QUEUED, Status.PROCESSING),
        (Status.QUEUED, Status.CANCELED),
        (Status.QUEUED, Status.FAILED),
        (Status.PROCESSING, Status.COMPLETED),
        (Status.PROCESSING, Status.FAILED),
        (Status.PROCESSING, Status.CANCELED),
        (Status.PROCESSING, Status.QUEUED),
    }


def test_every_transition_tells_an_event_and_terminal_events_belong_to_terminal_states() -> None:
    for after, event in TRANSITIONS.values():
        assert event in JOB_EVENTS
        assert (event in TERMINAL_EVENTS) == after.terminal
        assert STATUS_AFTER_EVENT[event] is after


def _after(code: str, job: Job, crash_retries: int = 1) -> Failed | Retried:
    return after_failure(TempaError(code), job, Usage(), crash_retries, random.Random(1))


@pytest.mark.parametrize("code", sorted(CRASH_CODES))
def test_a_crash_is_tried_once_more_and_never_twice(code: str) -> None:
    first = _after(code, a_job())
    assert isinstance(first, Retried)
    assert first.crash
    assert isinstance(_after(code, a_job(crash_count=1)), Failed)
    assert isinstance(_after(code, a_job(), crash_retries=0), Failed)


def test_crash_budget_and_retry_budget_are_apart() -> None:
    assert isinstance(_after("KERNEL_CRASHED", a_job(retry_count=9)), Retried)
    assert isinstance(_after("ARTIFACT_STORE_FAILED", a_job(crash_count=9)), Retried)


@pytest.mark.parametrize("code", sorted(set(CODES) - CRASH_CODES))
def test_the_table_says_how_often_an_error_is_tried_again(code: str) -> None:
    budget = CODES[code].auto if CODES[code].retryable else 0
    spent = 0
    while isinstance(ending := _after(code, a_job(retry_count=spent)), Retried):
        assert not ending.crash
        assert 0 <= ending.delay_seconds <= 30
        spent += 1
    assert spent == budget
    assert ending.error.code == code
