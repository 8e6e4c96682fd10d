"""When an endpoint counts as down, how it is asked whether it is back, and what is told of that.

Three different deliveries that failed in a row open the breaker: one poisonous event, however often it
is tried, does not. While it is open, deliveries are parked and spend no attempts; one real delivery at
a time asks, after full jitter under the retry policy's ceiling, which grows with each that fails. What
is taken closes it, and a `Pace` lets the parked ones go.

A final refusal tells nothing of an endpoint that works, which answers 404 for good reason. Of one that
is down it tells that it is not back: a proxy answers 404 in the middle of a redeploy.

Attempts that were under way when it opened are no probes: up to four would else make the wait for the
first probe sixteen times as long. But whatever is taken closes it, whenever it started.

Times are Unix milliseconds, passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tempa.core.retry import full_jitter
from tempa.webhooks import pace as paces
from tempa.webhooks.model import DeadReason, DeliveryStatus
from tempa.webhooks.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.retry import Dice, RetryPolicy
    from tempa.webhooks.model import AttemptOutcome, Next

DIFFERENT_FAILED = 3


class Verdict(StrEnum):
    """What an attempt tells of its endpoint."""

    TAKEN = "taken"  # 2xx
    REFUSED = "refused"  # final: a 4xx, a blocked address; or a fault of ours
    FAILED = "failed"  # what is tried again: 5xx, 408, 429, 3xx, the network, the deadline
    GONE = "gone"  # 410


class Change(StrEnum):
    """What is worth telling of an endpoint."""

    FAILING = "failing"  # the first failure after a success
    OPENED = "opened"
    RECOVERED = "recovered"  # taken again
    DISABLED = "disabled"  # 410: it wants nothing any more


@dataclass(frozen=True, slots=True)
class Health:
    """How an endpoint fares. The default is a healthy one, and is stored as nothing at all."""

    failed: tuple[int, ...] = ()  # numbers of the different deliveries that failed in a row, three at most
    failed_since_success: bool = False
    opened_at: int | None = None
    failed_probes: int = 0
    pace: Pace | None = None  # while it is open: only its ceiling counts
    owes: bool = False  # letters that died of it, whatever it has done since: the next success heals them

    @property
    def is_open(self) -> bool:
        """Whether deliveries are parked."""
        return self.opened_at is not None

    def as_dict(self) -> dict[str, Any] | None:
        """For JSON; None for a healthy one."""
        if self == Health():
            return None
        return {
            "failed": list(self.failed),
            "failed_since_success": self.failed_since_success,
            "opened_at": self.opened_at,
            "failed_probes": self.failed_probes,
            "pace": self.pace.as_dict() if self.pace else None,
            "owes": self.owes,
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Health:
        """What `as_dict` made."""
        if stored is None:
            return cls()
        pace = Pace.of(stored["pace"]) if stored["pace"] else None
        return cls(**{**stored, "failed": tuple(stored["failed"]), "pace": pace})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One attempt that ended."""

    delivery: int
    verdict: Verdict
    started_at: int
    at: int
    exhausted: bool = False  # it was the delivery's last: dead, and to be healed


@dataclass(frozen=True, slots=True)
class After:
    """What follows. `hold_seconds` gates the whole endpoint; 0 leaves a gate that stands as it is.

    `heals`: what died of the endpoint's failing may have its other round. So it is whenever something
    is taken after a failure, with each RECOVERED and also while a pace is on; and whenever the endpoint
    owes it: a fault of ours exhausts a delivery without a failure, a resume forgets those there were.
    """

    health: Health
    hold_seconds: float = 0.0
    change: Change | None = None
    heals: bool = False


def verdict_of(outcome: AttemptOutcome, then: Next) -> Verdict:
    """What an attempt tells of its endpoint."""
    if then.status is DeliveryStatus.DELIVERED:
        return Verdict.TAKEN
    if then.reason is DeadReason.REFUSED and outcome.http_status == 410:
        return Verdict.GONE
    is_final = then.status is DeliveryStatus.DEAD and then.reason is not DeadReason.EXHAUSTED
    return Verdict.REFUSED if is_final or outcome.error == "internal" else Verdict.FAILED


def after(health: Health, result: Result, policy: RetryPolicy, rng: Dice) -> After:
    """The endpoint's health after an attempt."""
    follows = _after(health, result, policy, rng)
    return replace(follows, health=owing(follows.health)) if result.exhausted else follows


def owing(health: Health) -> Health:
    """The same with letters that the next success heals."""
    return replace(health, owes=True)


def _after(health: Health, result: Result, policy: RetryPolicy, rng: Dice) -> After:
    if result.verdict is Verdict.GONE:
        return After(Health(owes=_heals(health)), change=Change.DISABLED)
    if result.verdict is Verdict.TAKEN:
        return _taken(health, result.at)
    if health.opened_at is not None:
        return _not_back(health, health.opened_at, result, policy, rng)
    return After(health) if result.verdict is Verdict.REFUSED else _failed(health, result, policy, rng)


def _heals(health: Health) -> bool:
    return health.failed_since_success or health.owes


def _taken(health: Health, now: int) -> After:
    heals = _heals(health)
    if health.is_open:
        ceiling = health.pace.ceiling_per_second if health.pace else None
        return After(Health(pace=paces.start(now, ceiling)), change=Change.RECOVERED, heals=heals)
    if health.pace:  # its recovery has been told
        return After(Health(pace=paces.after(health.pace, now, taken=True)), heals=heals)
    return After(Health(), change=Change.RECOVERED if health.failed_since_success else None, heals=heals)


def _failed(health: Health, result: Result, policy: RetryPolicy, rng: Dice) -> After:
    is_known = result.delivery in health.failed
    failed = health.failed if is_known else (*health.failed, result.delivery)
    if len(failed) >= DIFFERENT_FAILED:
        pace = paces.cut(health.pace, result.at) if health.pace else None
        opened = replace(health, failed=failed, failed_since_success=True, opened_at=result.at, pace=pace)
        return After(opened, full_jitter(0, policy, rng), Change.OPENED)
    pace = paces.after(health.pace, result.at, taken=False) if health.pace else None
    # While it recovers, some are refused: that is how its limit is found, and no news.
    is_news = not (health.pace or health.failed_since_success)
    next_health = replace(health, failed=failed, failed_since_success=True, pace=pace)
    return After(next_health, change=Change.FAILING if is_news else None)


def _not_back(health: Health, opened_at: int, result: Result, policy: RetryPolicy, rng: Dice) -> After:
    # If now is before the opening the clock was set back, and start times tell nothing.
    if result.started_at < opened_at <= result.at:
        return After(health)
    failed_probes = health.failed_probes + 1
    hold_seconds = full_jitter(failed_probes, policy, rng)
    return After(replace(health, failed_probes=failed_probes), hold_seconds)
