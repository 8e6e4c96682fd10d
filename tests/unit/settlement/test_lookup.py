"""When a payment is looked up again: soon while it may become final, seldom once a person has to act."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest

from tempa.settlement.inbox import InboxClaim, InboxEnding, InboxState
from tempa.settlement.lookup import Patience, again
from tempa.settlement.quorum import Held
from tempa.settlement.reasons import REASONS, Kind

NOW = datetime(2026, 12, 1, tzinfo=UTC)


class Latest(random.Random):
    """Dice that show the most there is."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def ending(
    reason: str, age_seconds: float = 0.0, attempts: int = 0, pause_seconds: float | None = None
) -> InboxEnding:
    claim = InboxClaim(signature="s", received_at=NOW - timedelta(seconds=age_seconds), attempts=attempts)
    return again(claim, Held(reason, pause_seconds), NOW, Patience(), Latest())


@pytest.mark.parametrize("reason", [code for code, row in REASONS.items() if row.kind is not Kind.TERMINAL])
def test_nothing_that_waits_is_ever_given_up(reason: str) -> None:
    for attempts in (0, 5, 1000):
        assert ending(reason, 1e9, attempts).state is InboxState.PENDING


def test_the_five_retries_of_a_nodes_trouble_come_within_15_minutes_and_the_sixth_is_shown() -> None:
    told = [ending("node_timeout", attempts=attempts) for attempts in range(6)]

    assert list(accumulate(one.delay_seconds for one in told[:5])) == [2, 10, 42, 170, 682]
    assert [one.spends_attempt for one in told] == [True] * 5 + [False]
    assert [one.is_shown for one in told] == [False] * 5 + [True]


def test_full_jitter() -> None:
    claim = InboxClaim(signature="s", received_at=NOW, attempts=2)
    dice = random.Random(1)
    waits = [again(claim, Held("node_timeout"), NOW, Patience(), dice).delay_seconds for _ in range(4_000)]

    assert 0 <= min(waits) < 0.1
    assert 31.9 < max(waits) <= 32
    assert abs(sum(waits) / len(waits) - 16) < 0.5


def test_a_pause_that_a_node_asks_for_is_kept() -> None:
    assert ending("node_rate_limited", pause_seconds=77.0).delay_seconds == 77.0


def test_what_is_not_final_is_asked_for_soon_then_seldom_and_shown_after_a_minute() -> None:
    assert ending("not_found_yet", 0.1).delay_seconds == pytest.approx(0.2)
    assert ending("not_found_yet", 8).delay_seconds == pytest.approx(2)
    assert ending("not_found_yet", 1e9).delay_seconds == 6 * 3600
    assert [ending("not_found_yet", age).is_shown for age in (0, 59.9, 60, 1e9)] == [False, False, True, True]
    assert not ending("not_found_yet", 1e9, attempts=9).spends_attempt


def test_a_clock_that_went_back_makes_no_negative_pause() -> None:
    assert ending("not_found_yet", -3_600).delay_seconds == pytest.approx(0.2)


def test_what_a_person_has_to_mend_is_shown_at_once() -> None:
    for reason in ("nodes_disagree", "wrong_cluster"):
        assert ending(reason).is_shown
        assert not ending(reason).spends_attempt
