"""Systems side by side: in every round each of ours goes right before the one it is compared with."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.probes import weather
from bench.process import or_told
from bench.queue import fleet
from bench.queue.trial import Asked, measure
from bench.ratios import Goal, Pair, ratios
from bench.table import Row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.probes import Weather
    from bench.queue.trial import Found, System

_TRIES = 2

PHASES = {
    "admission": "admitted/s, 64 clients",
    "drain": "no-op jobs/s",
    "pickup": "pickup p50, ms",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours beside a peer. Without a goal it is told only."""

    phase: str
    ours: str
    theirs: str
    goal: Goal | None = None


COMPARISONS = (
    Comparison("admission", fleet.POSTGRES, fleet.PROCRASTINATE_NAME, Goal(8, at_least=True)),
    Comparison("admission", fleet.POSTGRES, fleet.GRAPHILE, Goal(5, at_least=True)),
    Comparison("admission", fleet.POSTGRES, fleet.BULLMQ, Goal(2, at_least=True)),
    Comparison("admission", fleet.SQLITE, fleet.BULLMQ_SECOND),
    Comparison("drain", fleet.POSTGRES, fleet.PROCRASTINATE_NAME, Goal(15, at_least=True)),
    Comparison("drain", fleet.POSTGRES, fleet.GRAPHILE, Goal(3, at_least=True)),
    Comparison("drain", fleet.POSTGRES, fleet.GRAPHILE_SINGLY),
    Comparison("drain", fleet.SQLITE, fleet.BULLMQ),
    Comparison("pickup", fleet.SQLITE, fleet.BULLMQ, Goal(1, at_least=False)),
    Comparison("pickup", fleet.SQLITE, fleet.BULLMQ_SECOND),
    Comparison("pickup", fleet.POSTGRES, fleet.GRAPHILE, Goal(0.7, at_least=False)),
    Comparison("pickup", fleet.POSTGRES, fleet.PROCRASTINATE_NAME),
)


@dataclass(slots=True)
class Sheet:
    """What was found so far."""

    systems: Mapping[str, System]
    folder: Path
    scale: float
    figures: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    pairs: dict[Comparison, list[Pair]] = field(default_factory=lambda: defaultdict(list))
    weathers: list[Weather] = field(default_factory=list)

    def run(self, rounds: int) -> None:
        """All comparisons whose systems are there, round after round."""
        there = [each for each in COMPARISONS if {each.ours, each.theirs} <= self.systems.keys()]
        for number in range(rounds):
            for comparison in there:
                told = f"round {number + 1}: {comparison.phase}, {comparison.ours}, {comparison.theirs}"
                print(told, file=sys.stderr, flush=True)
                with or_told(told):
                    self._compare(comparison)

    def _compare(self, comparison: Comparison) -> None:
        """One pair; once more if the disk has made it void, and no oftener: it may be like that all day."""
        for _ in range(_TRIES):
            pair = self._pair(comparison)
            self.pairs[comparison].append(pair)
            if not pair.void:
                return

    def _pair(self, comparison: Comparison) -> Pair:
        weathers = [weather(self.folder)]
        figures = []
        for name in (comparison.ours, comparison.theirs):
            figures.append(self._figure(self.systems[name], comparison.phase))
            weathers.append(weather(self.folder))
        flushes = [each.flushes_per_second for each in weathers]
        self.weathers += weathers
        return Pair(figures[0], figures[1], flushes)

    def _figure(self, system: System, phase: str) -> float:
        scale = 1.0 if phase == "pickup" else self.scale
        found = measure(system, Asked(phase=phase, jobs=max(64, round(system.jobs[phase] * scale))))
        figure = _figure_of(found)
        self.figures[phase, system.name].append(figure)
        self.cpu[phase, system.name].append(found.cpu_seconds_per_1000)
        return figure

    def figure_rows(self, phase: str) -> list[Row]:
        """Each system's own figures."""
        sides = [(each.ours, each.theirs) for each in COMPARISONS if each.phase == phase]
        return [
            self._figure_row(phase, name) for name in dict.fromkeys(name for pair in sides for name in pair)
        ]

    def _figure_row(self, phase: str, name: str) -> Row:
        figures, cpu = self.figures[phase, name], self.cpu[phase, name]
        if not figures:
            return Row(name, (), note="not run")
        note = f"{statistics.median(cpu):.2f} CPU s a 1,000 jobs"
        return Row(f"{name} [{self._class(name)}]", figures, note=note)

    def ratio_rows(self) -> list[Row]:
        """Ours as multiples of theirs."""
        return [self._ratio_row(comparison) for comparison in COMPARISONS]

    def _ratio_row(self, comparison: Comparison) -> Row:
        what = f"{comparison.phase}: {comparison.ours} / {comparison.theirs}"
        pairs = self.pairs[comparison]
        if not pairs:
            return Row(what, (), comparison.goal, note="not run")
        if self._class(comparison.ours) != self._class(comparison.theirs):
            return Row(what, (), note="not compared: another durability")
        counted = ratios(pairs)
        return Row(what, counted, comparison.goal, len(pairs) - len(counted))

    def _class(self, name: str) -> str:
        return self.systems[name].durability


def _figure_of(found: Found) -> float:
    return statistics.median(found.waits_ms) if found.waits_ms else found.rate
