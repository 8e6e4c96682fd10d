"""What is told of figures that were taken in rounds: medians, ranges, and ratios of pairs that count."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DISK_MOVED_MAX = 1.5  # one machine's disk moved between 337 and 10,402 flushes/s within hours


@dataclass(frozen=True, slots=True)
class Pair:
    """Two figures taken one after the other, and the disk's flushes/s around them.

    None of these: neither figure holds a wait for the disk.
    """

    ours: float
    theirs: float
    flushes_per_second: Sequence[float]

    @property
    def ratio(self) -> float:
        """Ours as a multiple of theirs."""
        return self.ours / self.theirs

    @property
    def void(self) -> bool:
        """Whether the disk changed its speed meanwhile: then the two tell nothing of each other."""
        probes = self.flushes_per_second
        return bool(probes) and max(probes) > DISK_MOVED_MAX * min(probes)


@dataclass(frozen=True, slots=True)
class Spread:
    """Some figures: their median, least and greatest."""

    median: float
    least: float
    greatest: float


def spread(figures: Sequence[float]) -> Spread | None:
    """None: there are no figures."""
    if not figures:
        return None
    return Spread(statistics.median(figures), min(figures), max(figures))


def ratios(pairs: Sequence[Pair]) -> list[float]:
    """Of the pairs that are not void."""
    return [pair.ratio for pair in pairs if not pair.void]


def percentile(figures: Sequence[float], share: float) -> float:
    """The figure below which `share` (0 to 1) of them lie, by nearest rank."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound for a median."""

    bound: float
    at_least: bool

    @property
    def text(self) -> str:
        """As the table shows it."""
        return f"{'>=' if self.at_least else '<='} {self.bound:.3g}"

    def verdict(self, found: Spread | None) -> str:
        """`met`, `MISSED`, or `void` when nothing was left to judge by."""
        if found is None:
            return "void"
        met = found.median >= self.bound if self.at_least else found.median <= self.bound
        return "met" if met else "MISSED"
