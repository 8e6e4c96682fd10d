"""What an attempt's record says beside its status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tempa.testing.clock import ManualClock
from tempa.webhooks.hints import hint_of
from tempa.webhooks.ports import Answer
from tests.unit.webhooks.samples import NOW, FakeSender, FakeStore, a_claim
from tests.unit.webhooks.test_deliverer import a_deliverer, settled


def hint(status: int | None, error: str | None = None, location: str | None = None, **fields: Any) -> str:
    headers = {} if location is None else {"location": location}
    return hint_of(Answer(status, error, headers, **fields), NOW) or ""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_with_where_it_points(status: int) -> None:
    assert hint(status, location="https://new.example/hook?a=1").startswith(
        "redirects_to https://new.example/hook?a=1: give that URL"
    )


def test_without_a_location_there_is_nothing_to_tell() -> None:
    assert hint_of(Answer(304, None), NOW) is None
    assert hint_of(Answer(302, None, {"location": ""}), NOW) is None


def test_a_location_is_bounded() -> None:
    told = hint(302, location="/" + "x" * 60_000)
    assert "/" + "x" * 499 + ":" in told
    assert len(told) < 600


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\x7f", "\x85", "\x9b", "\t", "\xad"])
def test_nothing_in_a_location_steers_a_terminal_or_ends_a_text(bad: str) -> None:
    told = hint(302, location=f"/a{bad}[31mb\xe9")
    assert bad not in told
    assert "/a\ufffd[31mb\xe9:" in told
    assert told.isprintable()


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "secret"), (403, "secret"), (404, "path"), (410, "gone for good"), (413, "256 KiB")],
)
def test_what_a_refusal_may_mean(status: int, words: str) -> None:
    assert words in hint(status)


@pytest.mark.parametrize(
    ("error", "words"), [("tls", "certificate"), ("dns", "name"), ("blocked_address", "may not be called")]
)
def test_what_an_error_may_mean(error: str, words: str) -> None:
    assert words in hint(None, error)


@pytest.mark.parametrize("answer", [Answer(200, None), Answer(503, None), Answer(None, "reset")])
def test_most_answers_need_no_words(answer: Answer) -> None:
    assert hint_of(answer, NOW) is None


@pytest.mark.parametrize("left", [timedelta(days=14, seconds=-1), timedelta(), timedelta(days=-1)], ids=str)
def test_a_certificate_that_ends_within_a_fortnight_is_told_of(left: timedelta) -> None:
    assert "certificate ends" in hint(204, certificate_expires_at=NOW + left)


def test_one_that_is_good_for_a_fortnight_is_not_told_of() -> None:
    assert hint(204, certificate_expires_at=NOW + timedelta(days=14)) == ""


def test_a_certificates_end_is_told_beside_the_rest() -> None:
    told = hint(401, certificate_expires_at=NOW + timedelta(days=3))
    assert "secret" in told
    assert told.endswith("Its TLS certificate ends on 2026-12-03T12:00:00.000Z: renew it.")


async def test_it_is_on_the_attempts_record() -> None:
    store, sender = FakeStore(), FakeSender(Answer(302, None, {"location": "/elsewhere"}))
    store.due = [a_claim()]

    await settled(a_deliverer(store, sender, ManualClock(NOW)), store)

    ((_, outcome, _),) = store.settled
    assert (outcome.hint or "").startswith("redirects_to /elsewhere")
