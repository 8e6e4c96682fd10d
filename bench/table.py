"""How the figures are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.ratios import spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.probes import Weather
    from bench.ratios import Goal, Spread

_WIDTH = 62


@dataclass(frozen=True, slots=True)
class Row:
    """A figure beside its goal. `counted`: those it is judged by; `void`: how many were left out.

    Without a goal it is told and not judged, and `note` says why.
    """

    what: str
    counted: Sequence[float]
    goal: Goal | None = None
    void: int = 0
    note: str = ""

    def text(self) -> str:
        """One line."""
        found = spread(self.counted)
        goal = "" if self.goal is None else self.goal.text
        verdict = "" if self.goal is None else self.goal.verdict(found)
        void = f"{self.void} void" if self.void else ""
        note = "; ".join(part for part in (void, self.note) if part)
        return f"{self.what:<{_WIDTH}} {_told(found):>26}  {goal:>8}  {verdict:<6}  {note}".rstrip()


def print_rows(title: str, rows: Iterable[Row]) -> None:
    """A part of the table."""
    print(f"\n{title:<{_WIDTH}} {'median (least - greatest)':>26}  {'goal':>8}", flush=True)
    for row in rows:
        print(row.text(), flush=True)


def weather_rows(weathers: Sequence[Weather]) -> list[Row]:
    """What the machine did meanwhile."""
    return [
        Row("fdatasync/s of 4 KiB", [each.flushes_per_second for each in weathers]),
        Row("load (1 minute)", [each.load for each in weathers]),
    ]


def _told(found: Spread | None) -> str:
    if found is None:
        return "-"
    return f"{_number(found.median)} ({_number(found.least)} - {_number(found.greatest)})"


def _number(value: float) -> str:
    """Three digits, and all of them before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
