"""An endpoint's health: what opens the breaker, what asks, what closes it, what is told."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.retry import RetryPolicy
from tempa.webhooks import pace as paces
from tempa.webhooks.breaker import After, Change, Health, Result, Verdict, after, owing, verdict_of
from tempa.webhooks.model import AttemptOutcome, DeadReason, DeliveryStatus, Next

TAKEN, REFUSED, FAILED, GONE = Verdict
POLICY = RetryPolicy()
T0 = 1_796_040_000_000


class Fixed:
    """Dice that always fall the same way."""

    def __init__(self, value: float = 0.5) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def told(
    *results: tuple[int, Verdict], health: Health | None = None, at: int = T0
) -> tuple[Health, list[Change]]:
    """What so many attempts a second apart lead to, each over before the next begins."""
    health, changes = health or Health(), []
    for second, (delivery, verdict) in enumerate(results):
        end = at + 1000 * second
        then = after(
            health, Result(delivery=delivery, verdict=verdict, started_at=end, at=end), POLICY, Fixed()
        )
        health = then.health
        changes += [then.change] if then.change else []
    return health, changes


def one(health: Health, delivery: int, verdict: Verdict, *, started_at: int, at: int) -> After:
    result = Result(delivery=delivery, verdict=verdict, started_at=started_at, at=at)
    return after(health, result, POLICY, Fixed())


def opened() -> Health:
    """By deliveries 1, 2 and 3; the last failed at T0."""
    return told((1, FAILED), (2, FAILED), (3, FAILED), at=T0 - 2000)[0]


def test_three_different_deliveries_open_it() -> None:
    health, changes = told((1, FAILED), (2, FAILED), (3, FAILED))
    assert health.is_open
    assert health.opened_at == T0 + 2000
    assert changes == [Change.FAILING, Change.OPENED]


def test_one_delivery_that_fails_six_times_does_not() -> None:
    health, changes = told(*[(1, FAILED)] * 6)
    assert not health.is_open
    assert changes == [Change.FAILING]


def test_nor_do_two_in_turns() -> None:
    assert not told(*[(1, FAILED), (2, FAILED)] * 6)[0].is_open


def test_a_success_between_begins_the_count_anew() -> None:
    health, changes = told((1, FAILED), (2, FAILED), (9, TAKEN), (3, FAILED), (4, FAILED))
    assert not health.is_open
    assert changes == [Change.FAILING, Change.RECOVERED, Change.FAILING]


def test_a_refusal_neither_counts_nor_clears() -> None:
    assert told((1, REFUSED), (2, REFUSED), (3, REFUSED), (4, REFUSED)) == (Health(), [])
    assert told((1, FAILED), (2, FAILED), (9, REFUSED), (3, FAILED))[0].is_open


def test_a_success_after_one_failure_is_a_recovery_for_what_died_meanwhile() -> None:
    health, _ = told((1, FAILED))
    then = one(health, 2, TAKEN, started_at=T0, at=T0)
    assert then == After(Health(), change=Change.RECOVERED, heals=True)


def test_success_after_success_is_no_news() -> None:
    assert one(Health(), 1, TAKEN, started_at=T0, at=T0) == After(Health())


def test_gone_is_told_and_leaves_nothing_but_what_is_owed() -> None:
    for health, left in ((Health(), Health()), (opened(), owing(Health()))):
        assert one(health, 7, GONE, started_at=T0, at=T0 + 1) == After(left, change=Change.DISABLED)


def test_the_wait_for_a_probe_has_the_retry_policys_growing_ceiling() -> None:
    """Dice at one half: half of 2, 4, 8, 16, 32, 60, 60."""
    health = told((1, FAILED), (2, FAILED))[0]
    holds = []
    for probe in range(7):
        now = T0 + 60_000 * (probe + 1)
        then = one(health, 3 + probe, FAILED, started_at=now, at=now)
        health = then.health
        holds.append(then.hold_seconds)
    assert holds == [1, 2, 4, 8, 16, 30, 30]


def test_a_refused_probe_is_a_failed_one() -> None:
    """A proxy answers 404 in the middle of a redeploy."""
    then = one(opened(), 7, REFUSED, started_at=T0, at=T0 + 50)
    assert then.health.is_open
    assert then.health.failed_probes == 1
    assert then.hold_seconds == 2
    assert then.change is None


@pytest.mark.parametrize("verdict", [FAILED, REFUSED])
def test_what_was_under_way_when_it_opened_is_no_probe(verdict: Verdict) -> None:
    health = opened()
    assert one(health, 7, verdict, started_at=T0 - 1, at=T0 + 50) == After(health)


def test_unless_the_clock_was_set_back() -> None:
    """Then no start can be compared; a probe that did not count would be followed by the next at once."""
    hour = 3_600_000
    then = one(opened(), 7, FAILED, started_at=T0 - hour, at=T0 - hour + 50)
    assert then.hold_seconds == 2


@pytest.mark.parametrize("started_at", [T0 - 1, T0 + 10])
def test_what_is_taken_closes_it_whenever_it_started(started_at: int) -> None:
    then = one(opened(), 7, TAKEN, started_at=started_at, at=T0 + 50)
    assert then == After(Health(pace=paces.start(T0 + 50)), change=Change.RECOVERED, heals=True)


def test_recovery_begins_with_five_a_second() -> None:
    health, _ = told((4, TAKEN), health=opened(), at=T0 + 10)
    assert paces.interval_ms(health.pace) == 200


def test_refusals_of_a_recovering_endpoint_are_no_news_but_what_died_of_them_is_healed() -> None:
    health = Health(pace=paces.start(T0))
    heals = []
    for number, verdict in enumerate([TAKEN, FAILED, FAILED, TAKEN, TAKEN]):
        at = T0 + 100 * number
        then = one(health, number, verdict, started_at=at, at=at)
        health = then.health
        heals.append(then.heals)
        assert then.change is None
    assert heals == [False, False, False, True, False]
    assert health.pace is not None


def test_a_pace_that_ends_without_a_refusal_is_no_news() -> None:
    health, changes = told(*[(8, TAKEN)] * 10, health=Health(pace=paces.start(T0)), at=T0)
    assert (health, changes) == (Health(), [])


def test_what_fails_again_in_recovery_remembers_what_it_could_take() -> None:
    """Forty a second were taken in the last second, at forty: growth is slow from thirty-six on."""
    windows = paces.Window(T0 - 1000, taken=20), paces.Window(T0 - 500, taken=20)
    recovering = Health((1, 2), pace=paces.Pace(40, None, *windows), failed_since_success=True)
    again = one(recovering, 3, FAILED, started_at=T0 - 5, at=T0)
    assert again.change is Change.OPENED
    back = one(again.health, 4, TAKEN, started_at=T0 + 1000, at=T0 + 1010).health
    assert back.pace == paces.start(T0 + 1010, ceiling_per_second=36)


def outcome(status: int | None, error: str | None = None) -> AttemptOutcome:
    return AttemptOutcome(
        outcome="", http_status=status, error=error, duration_ms=1, timings={}, body_sha256="",
        response_excerpt=b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "error", "then", "verdict"),
    [
        (204, None, Next(status=DeliveryStatus.DELIVERED), TAKEN),
        (503, None, Next(status=DeliveryStatus.PENDING), FAILED),
        (302, None, Next(status=DeliveryStatus.PENDING), FAILED),
        (429, None, Next(status=DeliveryStatus.PENDING), FAILED),
        (410, None, Next(status=DeliveryStatus.PENDING), FAILED),  # an endpoint may have it tried again
        (None, "timeout", Next(status=DeliveryStatus.DEAD, reason=DeadReason.EXHAUSTED), FAILED),
        (410, None, Next(status=DeliveryStatus.DEAD, reason=DeadReason.EXHAUSTED), FAILED),
        (404, None, Next(status=DeliveryStatus.DEAD, reason=DeadReason.REFUSED), REFUSED),
        (410, None, Next(status=DeliveryStatus.DEAD, reason=DeadReason.REFUSED), GONE),
        (None, "too_large", Next(status=DeliveryStatus.DEAD, reason=DeadReason.TOO_LARGE), REFUSED),
        (
            None,
            "blocked_address",
            Next(status=DeliveryStatus.DEAD, reason=DeadReason.BLOCKED_ADDRESS),
            REFUSED,
        ),
        (None, "internal", Next(status=DeliveryStatus.PENDING), REFUSED),  # three of our slips open nothing
    ],
)
def test_what_an_attempt_tells_of_its_endpoint(
    status: int | None, error: str | None, then: Next, verdict: Verdict
) -> None:
    assert verdict_of(outcome(status, error), then) is verdict


attempts = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([TAKEN, REFUSED, FAILED, FAILED]), st.integers(0, 3000)),
    max_size=60,
)


@given(attempts, st.integers(0, 2**32))
def test_whatever_happens(attempts: list[tuple[int, Verdict, int]], seed: int) -> None:
    """It opens exactly when a third different delivery fails in a row, waits within the cap, round-trips."""
    health, now, rng = Health(), T0, random.Random(seed)
    row: set[int] = set()
    for delivery, verdict, step in attempts:
        was_open, now = health.is_open, now + step
        row = set() if verdict is TAKEN else row | ({delivery} if verdict is FAILED else set())
        then = after(health, Result(delivery=delivery, verdict=verdict, started_at=now, at=now), POLICY, rng)
        health = then.health

        assert health.is_open is (verdict is not TAKEN and (was_open or len(row) >= 3))
        assert (then.change is Change.OPENED) is (health.is_open and not was_open)
        assert 0 <= then.hold_seconds <= POLICY.cap_seconds
        assert (then.hold_seconds > 0) <= health.is_open
        assert Health.of(json.loads(json.dumps(health.as_dict()))) == health


def test_a_healthy_endpoint_is_stored_as_nothing() -> None:
    assert Health().as_dict() is None
    assert Health.of(None) == Health()


@pytest.mark.parametrize("health", [Health(), opened(), told((1, FAILED))[0]])
@pytest.mark.parametrize("verdict", [REFUSED, FAILED])
def test_a_success_heals_what_was_exhausted_whoever_was_to_blame(health: Health, verdict: Verdict) -> None:
    """An attempt of the last that failed by a fault of ours tells nothing of the endpoint."""
    last = Result(delivery=7, verdict=verdict, started_at=T0 + 1, at=T0 + 1, exhausted=True)
    died = after(health, last, POLICY, Fixed())
    assert died.health == owing(after(health, replace(last, exhausted=False), POLICY, Fixed()).health)
    taken = one(died.health, 8, TAKEN, started_at=T0 + 2, at=T0 + 2)
    assert (taken.heals, taken.health.owes) == (True, False)


def test_healing_what_is_owed_is_no_recovery() -> None:
    assert one(owing(Health()), 1, TAKEN, started_at=T0, at=T0) == After(Health(), heals=True)


def test_what_is_owed_outlives_a_failure_and_410() -> None:
    health, changes = told((1, FAILED), (2, FAILED), (3, FAILED), (4, GONE), health=owing(Health()))
    assert (health, changes[-1]) == (owing(Health()), Change.DISABLED)
