"""How long a job will still take, by what past ones took: told as an interval, promised by nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.jobs.model import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tempa.core.clock import Clock
    from tempa.jobs.model import Job, PastJob
    from tempa.jobs.ports import JobStore

SAMPLE_MAX = 50
WITHIN_SECONDS = 7 * 86_400.0
FRESH_SECONDS = 10.0  # what was learned holds that long: a job that is polled costs no query of its own
_SHARES = (0.5, 0.1, 0.9)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds until a job ends: the median, and the interval between the first and the last decile."""

    median_seconds: float
    range_seconds: tuple[float, float]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of a sorted sample lies, between neighbours linearly (Hyndman-Fan 7)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def estimate(job: Job, past: Sequence[PastJob], now: datetime) -> Estimate | None:
    """What is left of a job. None: it has ended, or there is nothing to learn from."""
    if job.status.terminal or not past:
        return None
    runs = sorted(one.run_seconds for one in past)
    if job.status is Status.PROCESSING and job.started_at is not None:
        elapsed = (now - job.started_at).total_seconds()
        left = [max(0.0, quantile(runs, share) - elapsed) for share in _SHARES]
    else:
        totals = sorted(one.total_seconds for one in past)
        age = (now - job.created_at).total_seconds()
        # However long it has waited, its run is still to come.
        left = [max(quantile(runs, share), quantile(totals, share) - age) for share in _SHARES]
    median, low, high = (round(seconds, 3) for seconds in left)
    return Estimate(median, (low, high))


@dataclass(slots=True)
class Estimates:
    """Estimates of jobs, from what was learned of their engine a moment ago."""

    store: JobStore
    clock: Clock
    _learned: dict[str, tuple[Sequence[PastJob], float]] = field(default_factory=dict)

    async def of(self, job: Job) -> Estimate | None:
        """What is left of a job."""
        if job.status.terminal:
            return None
        return estimate(job, await self._past(job.request.engine), self.clock.now())

    async def _past(self, engine: str) -> Sequence[PastJob]:
        past, until = self._learned.get(engine, ((), float("-inf")))
        now = self.clock.monotonic()
        if now >= until:
            past = await self.store.past_jobs(engine, WITHIN_SECONDS, SAMPLE_MAX)
            if past:  # else the first job that is done should be heard of at once, and asking costs a probe
                self._learned[engine] = (past, now + FRESH_SECONDS)
        return past
