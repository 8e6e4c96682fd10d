"""The tables of codes and problems are closed, and agree with the contract."""

from __future__ import annotations

import pytest

from tempa.core.errors import CODES, PROBLEMS, Problem, Refusal, TempaError

RETRYABLE = {  # CONTRACTS section 7, column "retryable"
    "DEADLINE_EXCEEDED", "KERNEL_CRASHED", "WORKER_LOST", "DEVICE_UNAVAILABLE",
    "ARTIFACT_STORE_FAILED", "RENTAL_EXPIRED", "INTERNAL",
}  # fmt: skip
AUTOMATIC = {  # column "auto"; KERNEL_CRASHED and WORKER_LOST spend the crash budget
    "KERNEL_CRASHED": 1, "WORKER_LOST": 1, "CUDA_OUT_OF_MEMORY": 1, "DEVICE_UNAVAILABLE": 1,
    "SOURCE_FETCH_FAILED": 2, "INTERNAL": 1,
}  # fmt: skip


def test_which_codes_are_retryable() -> None:
    assert {name for name, row in CODES.items() if row.retryable} == RETRYABLE


def test_how_often_tempa_itself_tries_again() -> None:
    assert {
        name: row.auto for name, row in CODES.items() if row.auto and name != "ARTIFACT_STORE_FAILED"
    } == AUTOMATIC
    assert CODES["ARTIFACT_STORE_FAILED"].auto > 0


def test_an_error_takes_message_hint_and_retryable_from_its_row_unless_told() -> None:
    plain = TempaError("KERNEL_CRASHED")
    assert (plain.message, plain.retryable) == (CODES["KERNEL_CRASHED"].meaning, True)
    told = TempaError("CUDA_OUT_OF_MEMORY", "shared card", retryable=True)
    assert (told.message, told.retryable) == ("shared card", True)


def test_a_code_outside_the_table_is_a_programmers_error() -> None:
    with pytest.raises(KeyError):
        TempaError("OOPS")


def test_a_refusal_is_a_problem_document() -> None:
    refusal = Refusal("invalid-request", "One problem.", (Problem("/parameters/length", "Too short.", 1e-3),))
    assert refusal.as_dict() == {
        "type": "urn:tempa:problem:invalid-request",
        "title": PROBLEMS["invalid-request"].title,
        "status": 422,
        "detail": "One problem.",
        "code": "INVALID_REQUEST",
        "errors": [{"pointer": "/parameters/length", "message": "Too short.", "limit": 1e-3}],
    }
