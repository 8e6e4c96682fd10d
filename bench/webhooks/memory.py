"""What 64 hostile receivers cost in memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.process import or_told
from bench.ratios import Goal
from bench.table import Row
from bench.webhooks.stage import hostile_url

if TYPE_CHECKING:
    from bench.webhooks.stage import Stage

GOAL = Goal(20, at_least=False)
_BEHAVIOURS = ("/drip-headers", "/drip-body", "/huge-body", "/gzip-bomb", "/many-headers", "/long-header")
_RECEIVERS = 64
_DELIVERIES_EACH = 4
_SECONDS = 12.0  # longer than an exchange may take
_MB = 1e6 / 2**20  # MiB


@dataclass(slots=True)
class Memory:
    """What was found so far."""

    stage: Stage
    more: list[float] = field(default_factory=list)  # MB
    idle: list[float] = field(default_factory=list)  # MB

    def round(self) -> None:
        """All of them at once."""
        print("64 hostile receivers", file=sys.stderr, flush=True)
        with or_told("64 hostile receivers"), hostile_url() as base:
            asked = {
                "urls": [f"{base}{_BEHAVIOURS[n % len(_BEHAVIOURS)]}?{n}" for n in range(_RECEIVERS)],
                "warm_urls": self.stage.urls(count=_RECEIVERS),
                "deliveries": _RECEIVERS * _DELIVERIES_EACH,
                "seconds": _SECONDS,
            }
            with self.stage.sender("hostile", **asked) as sender:
                found = sender.go().result()
        assert found["attempts"] > _RECEIVERS, "the hostile ones were never tried"
        self.more.append((found["most_mib"] - found["idle_mib"]) / _MB)
        self.idle.append(found["idle_mib"] / _MB)

    def rows(self) -> list[Row]:
        """Over idle."""
        return [
            Row(f"resident under {_RECEIVERS} hostile receivers, over idle, MB", self.more, GOAL),
            Row("    idle, MB", self.idle),
        ]
