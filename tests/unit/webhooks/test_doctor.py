"""What answers are worth: each state, its advice, and the grade they add up to."""

from __future__ import annotations

import pytest

from tempa.core.signing import new_secret
from tempa.webhooks import WebhookVerificationError, verify
from tempa.webhooks.advice import for_taking
from tempa.webhooks.doctor import (
    Case,
    Finding,
    State,
    cases,
    clock_skew_seconds,
    grade,
    headers,
    judge,
    judge_certificate,
    judge_clock,
    judge_speed,
)
from tempa.webhooks.ports import Answer

NOW = 1_796_040_000
SECRET, STRANGER = new_secret(), new_secret()
CASES = {case.name: case for case in cases("0badcafe", NOW)}


def state(name: str, *statuses: int | None, valid_taken: bool = True) -> State:
    answers = [Answer(status, None if status else "reset") for status in statuses]
    return judge(CASES[name], answers, valid_taken=valid_taken).state


def reason(case: Case) -> str | None:
    sent = dict(headers(case, SECRET, STRANGER, NOW, "Tempa/test"))
    try:
        verify(case.body, sent, SECRET, now=NOW)
    except WebhookVerificationError as error:
        return error.reason
    return None


def test_a_case_is_what_it_is_called() -> None:
    found = {name: reason(case) for name, case in CASES.items()}

    assert found == {
        **dict.fromkeys(["valid", "unicode", "large", "unknown-type", "duplicate"]),
        "tampered": "no_match",
        "wrong-key": "no_match",
        "unsigned": "missing_header",
        "stale": "timestamp_too_old",
    }
    assert {name for name, case in CASES.items() if not case.taken} == {
        name for name, why in found.items() if why
    }


@pytest.mark.parametrize("name", ["valid", "unicode", "large", "unknown-type"])
def test_what_must_be_taken(name: str) -> None:
    assert [state(name, status) for status in (200, 204, 299)] == ["pass"] * 3
    assert [state(name, status) for status in (199, 301, 400, 401, 410, 500, None)] == ["fail"] * 7


@pytest.mark.parametrize("name", ["tampered", "wrong-key", "unsigned", "stale"])
def test_what_must_be_refused(name: str) -> None:
    assert state(name, 200) == ("warn" if name == "stale" else "fail")
    assert [state(name, status) for status in (400, 401, 403, 422)] == ["pass"] * 4
    assert [state(name, status) for status in (302, 500, 503, None)] == ["warn"] * 4
    assert state(name, 401, valid_taken=False) == "warn"


def test_a_repetition_must_be_taken_both_times() -> None:
    assert state("duplicate", 200, 204) == "pass"
    assert state("duplicate", 200, 409) == state("duplicate", 500, 200) == "fail"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({}, "A"),
        ({"stale": "warn"}, "B"),
        ({"stale": "warn", "clock": "warn"}, "C"),
        ({"stale": "warn", "clock": "warn", "speed": "warn"}, "C"),
        ({"large": "fail"}, "D"),
        ({"large": "fail", "stale": "warn"}, "D"),
        ({"large": "fail", "unicode": "fail"}, "E"),
        ({"tampered": "fail"}, "F"),
        ({"wrong-key": "fail"}, "F"),
        ({"unsigned": "fail"}, "F"),
        ({"valid": "fail"}, "F"),
    ],
)
def test_the_grade(states: dict[str, State], expected: str) -> None:
    names = [*CASES, "clock", "speed"]
    findings = [Finding(name=name, state=states.get(name, "pass"), finding="") for name in names]

    assert grade(findings) == expected


@pytest.mark.parametrize(
    ("date", "skew"),
    [
        ("Mon, 30 Nov 2026 12:00:00 GMT", 0.5),  # as the header's whole seconds have it, on average
        ("Mon, 30 Nov 2026 13:00:00 GMT", 3600.5),
        ("Mon, 30 Nov 2026 11:59:00 -0000", -59.5),
        ("Mon, 30 Nov 2026 13:00:00 +0100", 0.5),
    ],
)
def test_its_clock_is_read_from_date(date: str, skew: float) -> None:
    answer = Answer(200, None, {"date": date}, timings={"total": 4.0})

    assert clock_skew_seconds(answer, NOW + 2.0) == skew  # the answer was written half way


@pytest.mark.parametrize("fields", [{}, {"date": ""}, {"date": "soon"}, {"date": "99 Foo 2026"}])
def test_without_a_date_nothing_is_said_of_its_clock(fields: dict[str, str]) -> None:
    assert clock_skew_seconds(Answer(200, None, fields), NOW) is None


def test_the_bounds_of_clock_certificate_and_speed() -> None:
    assert [judge_clock(seconds).state for seconds in (0, 30, -30, 31, -3600)] == [
        *["pass"] * 3,
        *["warn"] * 2,
    ]
    assert [judge_certificate(days).state for days in (-1, 0, 20.9, 21, 90)] == [
        *("fail", "warn", "warn"),
        *["pass"] * 2,
    ]
    assert [judge_speed(seconds).state for seconds in (0.1, 4.9, 5, 9)] == ["pass", "pass", "warn", "warn"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(401, None), "tempa webhooks verify"),
        (Answer(404, None), "Nothing lives at this path"),
        (Answer(308, None, {"location": "https://b.example/"}), "to https://b.example/; give that URL"),
        (Answer(302, None), "redirects elsewhere"),
        (Answer(418, None), "what does its log say?"),
        (Answer(502, None), "It breaks on it"),
        (Answer(None, "connect_refused"), "Nothing listens there"),
        (Answer(None, "tls"), "No trusted connection"),
        (Answer(None, "something new"), "No valid answer came"),
    ],
)
def test_advice_fits_the_answer(answer: Answer, words: str) -> None:
    assert words in for_taking("valid", answer)


def test_what_a_case_is_about_comes_before_what_its_status_usually_means() -> None:
    assert "256 KiB" in for_taking("large", Answer(400, None))
    assert "redirects" in for_taking("large", Answer(301, None))
