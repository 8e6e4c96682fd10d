"""How many jobs an account may have at this moment, and what is said to the one that is too many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from tempa.core.clock import rfc3339
from tempa.core.errors import Problem, Refusal

if TYPE_CHECKING:
    from tempa.core.accounts import AccountFull
    from tempa.jobs.model import Tenant

_FULL_RETRY_SECONDS = 5  # jobs end all the time


@dataclass(frozen=True, slots=True)
class Spent:
    """An account's kernel seconds of today, when they have reached its cap."""

    seconds: float
    cap_seconds: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many of its jobs may wait or run (None: any number).

    None more, and that is why: `spent` today, or `not_rented`, the instance that the new one is bound to.
    """

    jobs_max: int | None = None
    spent: Spent | None = None
    not_rented: Tenant | None = None

    @property
    def limit(self) -> str:
        """The name of the limit that is reached."""
        return "queued_max" if self.spent is None else "compute_seconds_per_day"

    def refusal(self, full: AccountFull, now: datetime) -> Refusal:
        """429, for an account with that many jobs."""
        if self.spent is not None:
            return _spent_refusal(self.spent, now)
        return too_many(
            f"The account has {full.jobs} jobs that wait or run; its limit queued_max is {self.jobs_max}. "
            "Ask again when some have ended.",
            self.jobs_max,
            _FULL_RETRY_SECONDS,
        )


def _spent_refusal(spent: Spent, now: datetime) -> Refusal:
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return too_many(
        f"The account's jobs have used {spent.seconds:.3f} s of compute since 00:00 UTC; its limit "
        f"compute_seconds_per_day is {spent.cap_seconds:g}. What waits or runs goes on; "
        f"ask again after {rfc3339(tomorrow)}.",
        spent.cap_seconds,
        (tomorrow - now).total_seconds(),
    )


def too_many(detail: str, limit: float | None, retry_seconds: float) -> Refusal:
    """429 with `Retry-After`: whole seconds, rounded up, or the client comes a moment too early."""
    headers = {"Retry-After": str(max(1, math.ceil(retry_seconds)))}
    return Refusal("too-many-requests", detail, (Problem("", detail, limit),), headers=headers)
