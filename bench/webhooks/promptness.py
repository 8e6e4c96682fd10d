"""How soon a webhook is at its receiver: at half load, and while some receivers are bad."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.probes import weather
from bench.process import or_told
from bench.ratios import Goal, Pair, percentile, ratios
from bench.table import Row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from bench.probes import Weather
    from bench.process import Process
    from bench.webhooks.stage import Stage

BAD_GOAL = Goal(1.5, at_least=False)
FIRST_BYTE_GOAL = Goal(10, at_least=False)
_BAD_PER_SECOND = 100.0
_PATIENCE_SECONDS = 60.0


def waits_ms(committed: Mapping[str, float], first_bytes: Mapping[str, float]) -> list[float]:
    """From each job's end on disk to the first byte of its webhook. Each must have come."""
    return [(first_bytes[job_id] - at) * 1000 for job_id, at in committed.items()]


@dataclass(slots=True)
class Promptness:
    """What was found so far."""

    stage: Stage
    seconds: float
    pairs: list[Pair] = field(default_factory=list)
    weathers: list[Weather] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p50_less_fsync: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    busy_percent: list[float] = field(default_factory=list)  # of one core, by the process

    def beside_bad_ones(self) -> None:
        """The healthy ones' p99 with a dead and a dripping endpoint among them, over none.

        Both at once, on one core and one disk: what else the machine does meanwhile, it does to both.
        """
        print("p99 beside a dead and a dripping endpoint", file=sys.stderr, flush=True)
        with (
            or_told("p99 beside a dead and a dripping endpoint"),
            self._sender(_BAD_PER_SECOND, bad=True) as ours,
            self._sender(_BAD_PER_SECOND, bad=False) as theirs,
        ):
            both = [sender.go() for sender in (ours, theirs)]
            committed = [sender.result()["committed"] for sender in both]
            first_bytes = self.stage.report()["first_bytes"]
            beside, alone = (percentile(waits_ms(each, first_bytes), 0.99) for each in committed)
            self.pairs.append(Pair(beside, alone, ()))

    def at(self, per_second: float) -> None:
        """From a job's end on disk to the first byte, at this rate."""
        print(f"first byte at {per_second:.0f}/s", file=sys.stderr, flush=True)
        with or_told("job commit to first byte"):
            before = weather(self.stage.folder)
            waits = self._waits_ms(per_second)
            after = weather(self.stage.folder)
            fsync_ms = 2000 / (before.flushes_per_second + after.flushes_per_second)
            self.weathers += (before, after)
            self.per_second.append(per_second)
            self.p50.append(percentile(waits, 0.5))
            self.p50_less_fsync.append(self.p50[-1] - fsync_ms)
            self.p99.append(percentile(waits, 0.99))

    def rows(self) -> list[Row]:
        """Both parts."""
        bad, none = [pair.ours for pair in self.pairs], [pair.theirs for pair in self.pairs]
        return [
            Row("healthy p99: 1 dead + 1 dripping of 100 / none", ratios(self.pairs), BAD_GOAL),
            Row("    with them, ms", bad),
            Row("    without, ms", none),
            Row("job commit -> first byte p50, less one fsync, ms", self.p50_less_fsync, FIRST_BYTE_GOAL),
            Row("    p50, ms", self.p50),
            Row("    p99, ms", self.p99),
            Row("    at jobs/s (half of the rate above)", self.per_second),
            Row("    the process is busy meanwhile, % of a core", self.busy_percent),
        ]

    def _waits_ms(self, per_second: float) -> list[float]:
        with self._sender(per_second, bad=False) as sender:
            found = sender.go().result()
            self.busy_percent.append(100 * found["cpu_seconds"] / found["seconds"])
            return waits_ms(found["committed"], self.stage.report()["first_bytes"])

    def _sender(self, per_second: float, *, bad: bool) -> AbstractContextManager[Process]:
        urls = self.stage.urls()
        bad_urls = [*self.stage.urls("/hang", 1), *self.stage.urls("/drip", 1)] if bad else []
        return self.stage.sender(
            "paced",
            urls=urls[len(bad_urls) :],
            bad_urls=bad_urls,
            deliveries=max(100, round(per_second * self.seconds)),
            per_second=per_second,
            patience_seconds=_PATIENCE_SECONDS,
        )
