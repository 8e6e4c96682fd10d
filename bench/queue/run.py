"""The queue's figures beside their goals and beside other engines.

    make bench-queue      # all of it: five rounds, ten million rows: an hour or more
    make bench-queue ROUNDS=1 ARGS="--rows 100000 --seen 5000 --flood 5000"   # a try: minutes

A missed goal is printed as MISSED; what cannot be installed as "not run". How to read the table, and why
it is measured so: docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.probes import machine
from bench.queue.fleet import standing
from bench.queue.own.flat import full_postgres, full_sqlite, pinned
from bench.queue.own.flood import flood
from bench.queue.own.idle import idle
from bench.queue.own.killed import killed
from bench.queue.rounds import PHASES, Sheet
from bench.table import print_rows, weather_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.table import Row

PARTS = ("peers", "full", "pinned", "flood", "killed", "idle")


def options() -> argparse.Namespace:
    """What the command line asks for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--scale", type=float, default=1.0, help="of the number of jobs in a phase")
    asked.add_argument("--rows", type=int, default=10_000_000, help="finished jobs in the full stores")
    asked.add_argument("--seen", type=int, default=100_000, help="jobs that pass an idle snapshot")
    asked.add_argument("--flood", type=int, default=100_000, help="jobs of the flood")
    asked.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return asked.parse_args()


def main() -> None:
    asked = options()
    print(f"{asked.rounds} rounds; {machine()}")
    with tempfile.TemporaryDirectory(prefix="tempa-bench-") as temporary:
        folder = Path(temporary)
        if "peers" in asked.parts:
            _peers(folder, asked)
        parts = _own(folder, asked)
        for part in asked.parts:
            for title, measure in parts.get(part, ()):
                print_rows(title, measure())


def _peers(folder: Path, asked: argparse.Namespace) -> None:
    with standing(folder) as systems:
        print("\nsettings")
        for system in systems.values():
            print(f"  {system.name} [{system.durability}]: {system.settings}")
            print(f"      on {system.service.settings}")
        sheet = Sheet(systems, folder, asked.scale)
        sheet.run(asked.rounds)
    for phase, title in PHASES.items():
        print_rows(title, sheet.figure_rows(phase))
    print_rows("ratios of pairs", sheet.ratio_rows())
    print_rows("the machine meanwhile", weather_rows(sheet.weathers))


def _own(folder: Path, asked: argparse.Namespace) -> dict[str, list[tuple[str, Callable[[], list[Row]]]]]:
    rounds = asked.rounds
    return {
        "full": [
            ("flatness", lambda: asyncio.run(full_postgres(folder, rounds, asked.rows))),
            ("flatness", lambda: asyncio.run(full_sqlite(folder, rounds, asked.rows))),
        ],
        "pinned": [("idle snapshot", lambda: asyncio.run(pinned(rounds, asked.seen)))],
        "flood": [("fairness", lambda: asyncio.run(flood(folder, asked.flood)))],
        "killed": [("recovery", lambda: killed(folder, rounds))],
        "idle": [("footprint", lambda: idle(folder, rounds))],
    }


if __name__ == "__main__":
    main()
