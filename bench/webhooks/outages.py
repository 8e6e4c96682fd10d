"""An endpoint that is down: how often it is bothered, and how it is treated when it is back."""

from __future__ import annotations

import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.process import or_told
from bench.ratios import Goal
from bench.table import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.webhooks.stage import Stage

BOTHERED_GOAL = Goal(20, at_least=False)
PEAK_GOAL = Goal(1.25, at_least=False)
REJECTED_GOAL = Goal(3, at_least=False)
CAPACITY_PER_SECOND = 200.0
_DOWN_SECONDS = 5.0
_PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Return:
    """What an endpoint saw after it had come back."""

    peak: float  # requests in the worst second, as a multiple of what it can take
    rejected_percent: float
    drain: float  # seconds until all was taken, as a multiple of what its capacity makes necessary


def return_of(came: Sequence[tuple[float, bool]], back_at: float, capacity: float) -> Return | None:
    """From when each request came and whether it was taken. None: none came after `back_at`."""
    after = [(at - back_at, taken) for at, taken in came if at >= back_at]
    taken = [at for at, was_taken in after if was_taken]
    if not after or not taken:
        return None
    worst_second = max(Counter(int(at) for at, _ in after).values())
    rejected = 100 * (len(after) - len(taken)) / len(after)
    return Return(worst_second / capacity, rejected, (max(taken) - after[0][0]) / (len(taken) / capacity))


def bothered(stage: Stage, pending: int, seconds: float) -> list[Row]:
    """Attempts at an endpoint that refuses connections, once."""
    print(f"a dead endpoint, {seconds:.0f} s", file=sys.stderr, flush=True)
    what = f"attempts at a dead endpoint in {seconds:.0f} s, {pending:,} pending"
    attempts: list[float] = []
    with or_told(what), socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, but nobody listens: connections are refused
        urls = [f"http://127.0.0.1:{nobody.getsockname()[1]}/"]
        with stage.sender("dead", urls=urls, deliveries=pending, seconds=seconds) as sender:
            attempts.append(sender.go().result()["attempts"])
    return [Row(what, attempts, BOTHERED_GOAL)]


@dataclass(slots=True)
class Recovery:
    """What was found so far."""

    stage: Stage
    pending: int
    returns: list[Return] = field(default_factory=list)
    first_seconds: list[float] = field(default_factory=list)
    undelivered: list[float] = field(default_factory=list)

    def round(self) -> None:
        """One endpoint that is down, comes back, and can take so much."""
        print("recovery", file=sys.stderr, flush=True)
        asked = {"deliveries": self.pending, "patience_seconds": _PATIENCE_SECONDS}
        urls = self.stage.urls("/limited", 1)
        with or_told("recovery"), self.stage.sender("recovery", urls=urls, **asked) as sender:
            sender.go()
            time.sleep(_DOWN_SECONDS)
            back_at = time.monotonic()
            self.stage.receiver.say(f"capacity {CAPACITY_PER_SECOND}")
            delivered = sender.result()["delivered"]
            came = [(at, taken) for at, taken in self.stage.report()["limited"]]
            self.undelivered.append(self.pending - delivered)
            if found := return_of(came, back_at, CAPACITY_PER_SECOND):
                self.returns.append(found)
                self.first_seconds.append(came[0][0] - back_at)

    def rows(self) -> list[Row]:
        """Peak and rejections, and what they cost in time."""
        capacity = f"capacity {CAPACITY_PER_SECOND:.0f}/s, {self.pending:,} waiting"
        peaks = [each.peak for each in self.returns]
        rejected = [each.rejected_percent for each in self.returns]
        return [
            Row("recovery: worst second / capacity", peaks, PEAK_GOAL, note=capacity),
            Row("recovery: rejected, %", rejected, REJECTED_GOAL),
            Row("    back until the first request, s", self.first_seconds),
            Row("    from there until all is taken / ideal", [each.drain for each in self.returns]),
            Row("    not delivered in the end", self.undelivered),
        ]
