"""What follows from an answer, and what exactly is sent."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.retry import RetryPolicy
from tempa.webhooks.deliver import follow, render, retry_after_seconds
from tempa.webhooks.model import DeadReason, DeliveryStatus, Message, Next
from tempa.webhooks.ports import Answer
from tests.unit.webhooks.test_retry import kolmogorov_p

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POLICY = RetryPolicy()


def after(
    status: int | None, error: str | None = None, spent: int = 0, retry_after: str | None = None
) -> Next:
    headers = {"retry-after": retry_after} if retry_after else {}
    return follow(Answer(status=status, error=error, headers=headers), spent, POLICY, NOW, random.Random(7))


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
def test_any_2xx_is_success(status: int) -> None:
    assert after(status).status is DeliveryStatus.DELIVERED


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308, 408, 429, 500, 501, 502, 503, 504, 599])
def test_these_are_tried_again_after_full_jitter(status: int) -> None:
    then = after(status)
    assert then.status is DeliveryStatus.PENDING
    assert 0 <= then.delay_seconds <= 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 425, 451])
def test_other_4xx_are_final(status: int) -> None:
    then = after(status)
    assert (then.status, then.reason) == (DeliveryStatus.DEAD, DeadReason.REFUSED)
    assert (then.hold_seconds, then.delay_seconds) == (0, 0)


def test_an_endpoint_may_have_some_of_them_tried_again() -> None:
    wanted = frozenset({404, 425})
    tried = {
        status: follow(Answer(status, None), 0, POLICY, NOW, random.Random(7), wanted).status
        for status in (404, 425, 429, 400, 410)
    }
    assert [status for status, then in tried.items() if then is DeliveryStatus.PENDING] == [404, 425, 429]


def test_what_the_breaker_may_need_goes_along() -> None:
    """Its throw is its own: a probe must not come exactly when the retry does."""
    dice = random.Random(7)
    thens = [follow(Answer(503, None), 0, POLICY, NOW, dice) for _ in range(100)]
    assert {then.backoff.policy for then in thens} == {POLICY}
    assert len({then.backoff.thrown for then in thens}) == 100
    assert all(0 <= then.backoff.thrown < 1 for then in thens)
    assert all(then.backoff.thrown * 2 != then.delay_seconds for then in thens)


@pytest.mark.parametrize(
    "error", ["dns", "connect_refused", "connect_timeout", "tls", "timeout", "reset", "protocol_error"]
)
def test_no_answer_is_tried_again(error: str) -> None:
    assert after(None, error).status is DeliveryStatus.PENDING


@pytest.mark.parametrize(
    ("error", "reason"),
    [("blocked_address", DeadReason.BLOCKED_ADDRESS), ("invalid_url", DeadReason.INVALID_URL)],
)
def test_what_trying_again_cannot_mend_is_final(error: str, reason: DeadReason) -> None:
    then = after(None, error)
    assert (then.status, then.reason) == (DeliveryStatus.DEAD, reason)


@pytest.mark.parametrize("spent", range(5))
def test_the_waits_before_a_retry_are_uniform_to_its_ceiling(spent: int) -> None:
    """Each is one throw of two: the other is the breaker's, and must not skew it."""
    dice = random.Random(20261130 + spent)
    answer = Answer(status=503, error=None)
    waits = [follow(answer, spent, POLICY, NOW, dice).delay_seconds for _ in range(10_000)]
    assert kolmogorov_p(waits, 2.0 * 2**spent) > 0.01


def test_five_retries_and_then_the_dead_letters() -> None:
    assert [after(500, spent=spent).status for spent in range(6)] == [DeliveryStatus.PENDING] * 5 + [
        DeliveryStatus.DEAD
    ]
    assert after(500, spent=5).reason is DeadReason.EXHAUSTED


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120), ("0", 0), ("1e9", 0), ("-5", 0), ("1.5", 0), ("", 0), (None, 0), ("soon", 0),
        ("999999999999999999999", 86_400), ("\u0661\u0662", 0),
        ("Mon, 30 Nov 2026 12:02:00 GMT", 120), ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 30 Nov 2029 12:00:00 GMT", 86_400),
    ],
)  # fmt: skip
def test_retry_after_is_read_or_ignored_and_clamped(header: str | None, seconds: float) -> None:
    assert retry_after_seconds(header, NOW) == seconds


@given(st.text())
def test_no_retry_after_breaks_anything(header: str) -> None:
    assert 0 <= retry_after_seconds(header, NOW) <= 86_400


def test_retry_after_holds_the_endpoint_and_the_jitter_comes_on_top() -> None:
    """The delivery itself waits for no more than its jitter: what ends the hold lets it go too."""
    then = after(429, retry_after="120")
    assert 0 < then.delay_seconds <= 2
    assert then.hold_seconds == 120 + then.delay_seconds


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_on_the_last_answer_holds_the_endpoint_still(status: int) -> None:
    then = after(status, spent=5, retry_after="120")
    assert (then.status, then.reason) == (DeliveryStatus.DEAD, DeadReason.EXHAUSTED)
    assert 120 < then.hold_seconds <= 180


class FixedLinks:
    """Links that count, so that a fresh one can be told from an old one."""

    def __init__(self) -> None:
        self.minted = 0

    def artifact(self, job_id: str, name: str) -> tuple[str, datetime]:
        self.minted += 1
        return f"https://here/{job_id}/{name}?{self.minted}", NOW + timedelta(hours=1)


def test_the_body_is_the_contracts_and_each_attempt_mints_its_links() -> None:
    message = Message(
        id="evt_1",
        account="default",
        job_id="cad_1",
        type="cad_generation.completed",
        at=NOW,
        data={
            "job_id": "cad_1",
            "status": "completed",
            "model": "m",
            "compute_time_ms": 12,
            "tags": {"øre": "1"},
        },
        links={"step": ("cad_1", "model.step")},
    )
    links = FixedLinks()
    first, second = render(message, links), render(message, links)
    assert json.loads(first) == {
        "event": "cad_generation.completed",
        "type": "cad_generation.completed",
        "id": "evt_1",
        "timestamp": 1796040000,
        "data": {
            "job_id": "cad_1", "status": "completed", "model": "m", "compute_time_ms": 12,
            "artifacts": {"step": "https://here/cad_1/model.step?1"}, "tags": {"øre": "1"},
        },
    }  # fmt: skip
    assert "øre".encode() in first  # UTF-8, not escapes
    assert second == first.replace(b"?1", b"?2")
