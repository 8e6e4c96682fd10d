"""CPU a delivery: ours, over pycurl alone, and beside other ways to send."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.environments import Missing, python_with
from bench.process import Broken, Process, or_told
from bench.ratios import Goal, Pair, ratios
from bench.table import Row
from bench.webhooks.bare import IN_FLIGHT
from bench.webhooks.pins import AIOHTTP, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.webhooks.stage import Stage

OURS = "Tempa: signed, durable, all rows"
BARE = "pycurl alone, the same bytes ready made"
SIGNED = "pycurl alone, serialising and signing"
OVER_AIOHTTP = "Tempa over aiohttp in place of pycurl"
RECIPE = "requests.post"
_RECIPE_SHARE = 10  # one in so many: it costs about as much more

_PAYLOAD = {
    "event": "cad_generation.completed",
    "type": "cad_generation.completed",
    "id": "evt_019aa5f2c0d57e1c8b52f0a6",
    "timestamp": 1711929600,
    "data": {
        "job_id": "cad_019aa5f2c0d57e1c8b52f0a6",
        "status": "completed",
        "model": "opencascade-brep",
        "compute_time_ms": 12,
        "artifacts": {
            role: f"https://tempa.example.com/v1/artifacts/cad_019aa5f2c0d57e1c8b52f0a6/model.{role}"
            f"?expires=1711933200&signature={'x' * 43}"
            for role in ("step", "glb")
        },
        "tags": {"order": "A-17"},
    },
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A ratio of microseconds."""

    what: str
    over: str
    under: str
    goal: Goal | None = None


COMPARISONS = (
    Comparison("CPU: Tempa / pycurl alone", OURS, BARE, Goal(2.5, at_least=False)),
    Comparison("CPU: Tempa / pycurl alone, which serialises and signs", OURS, SIGNED),
    Comparison("CPU: the same over aiohttp / Tempa", OVER_AIOHTTP, OURS, Goal(1.5, at_least=True)),
    Comparison(f"CPU: {RECIPE} / Tempa", RECIPE, OURS, Goal(20, at_least=True)),
)


@dataclass(slots=True)
class Cost:
    """What was found so far, round by round."""

    stage: Stage
    deliveries: int
    rounds: list[dict[str, float]] = field(default_factory=list)  # microseconds of CPU a delivery, by name
    rates: list[float] = field(default_factory=list)  # of ours, deliveries/s
    writes_per_commit: list[float] = field(default_factory=list)

    def round(self) -> None:
        """Each once, ours in the middle."""
        found: dict[str, float] = {}
        ways: dict[str, Callable[[], float]] = {
            BARE: lambda: self._bare(signs=False),
            SIGNED: lambda: self._bare(signs=True),
            OURS: self._ours,
            OVER_AIOHTTP: self._over_aiohttp,
            RECIPE: self._recipe,
        }
        for name, measure in ways.items():
            print(f"CPU: {name}", file=sys.stderr, flush=True)
            with or_told(name):
                found[name] = measure()
        self.rounds.append(found)

    def rows(self) -> list[Row]:
        """The figures."""
        names = (BARE, SIGNED, OURS, OVER_AIOHTTP, RECIPE)
        told = [Row(f"{name}, us", [found[name] for found in self.rounds if name in found]) for name in names]
        rates = Row("Tempa, deliveries/s", self.rates)
        return [*told, rates, Row("Tempa, writes a commit: a claim and an end each", self.writes_per_commit)]

    def ratio_rows(self) -> list[Row]:
        """Round by round, as multiples."""
        return [_ratio_row(comparison, self.rounds) for comparison in COMPARISONS]

    def _ours(self) -> float:
        figures = self._measure("drain", self.deliveries, aiohttp=None)
        self.rates.append(self.deliveries / figures["seconds"])
        self.writes_per_commit.append(2 * self.deliveries / figures["commits"])
        return self._microseconds(figures, self.deliveries)

    def _over_aiohttp(self) -> float:
        figures = self._measure("drain", self.deliveries, aiohttp=_packages("aiohttp", AIOHTTP))
        return self._microseconds(figures, self.deliveries)

    def _bare(self, *, signs: bool) -> float:
        figures = self._measure("bare", self.deliveries, signs=signs)
        return self._microseconds(figures, self.deliveries)

    def _measure(self, scene: str, deliveries: int, **options: Any) -> dict[str, Any]:
        urls = self.stage.urls()
        with self.stage.sender(scene, urls=urls, deliveries=deliveries, **options) as sender:
            return sender.go().result()

    def _recipe(self) -> float:
        deliveries = max(1, self.deliveries // _RECIPE_SHARE)
        asked = {"urls": self.stage.urls(), "payload": _PAYLOAD, "in_flight": IN_FLIGHT}
        command = (_python("requests", REQUESTS), "-m", "bench.webhooks.recipe")
        with Process("requests.post", command, {**asked, "deliveries": deliveries}) as sender:
            self.stage.report()
            return self._microseconds(sender.go().result(), deliveries)

    def _microseconds(self, figures: dict[str, Any], deliveries: int) -> float:
        """CPU of one, if every one came exactly once."""
        came, answered = self.stage.report()["requests"], figures.get("answered", deliveries)
        if (came, answered) != (deliveries, deliveries):
            raise Broken(f"{came} requests came for {deliveries} deliveries, {answered} were answered 200")
        return float(figures["cpu_seconds"]) / deliveries * 1e6


def _ratio_row(comparison: Comparison, rounds: list[dict[str, float]]) -> Row:
    over, under = comparison.over, comparison.under
    # CPU time holds no wait for the disk: every pair counts.
    pairs = [Pair(found[over], found[under], ()) for found in rounds if {over, under} <= found.keys()]
    note = "" if pairs else "not run"
    return Row(comparison.what, ratios(pairs), comparison.goal, note=note)


def _python(name: str, requirements: tuple[str, ...]) -> str:
    try:
        return str(python_with(name, requirements))
    except Missing as missing:
        raise Broken(str(missing)) from missing


def _packages(name: str, requirements: tuple[str, ...]) -> str:
    folder = _python(name, requirements).removesuffix("/bin/python")
    return f"{folder}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
