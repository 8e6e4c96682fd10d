"""The webhooks' figures beside their goals.

    make bench-webhooks               # all of it, five rounds: half an hour
    make bench-webhooks ROUNDS=1      # a try: eight minutes
    make bench-webhooks ROUNDS=1 ARGS="--parts cost prompt"

A missed goal is printed as MISSED. How to read the table: docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.probes import machine
from bench.table import print_rows, weather_rows
from bench.webhooks.cost import Cost
from bench.webhooks.memory import Memory
from bench.webhooks.outages import Recovery, bothered
from bench.webhooks.promptness import Promptness
from bench.webhooks.stage import Stage, standing

PARTS = ("cost", "prompt", "dead", "recovery", "memory")


def options() -> argparse.Namespace:
    """What the command line asks for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--deliveries", type=int, default=4000, help="whose CPU is measured")
    asked.add_argument("--seconds", type=float, default=10.0, help="that a steady pace is kept")
    asked.add_argument("--pending", type=int, default=10_000, help="for the dead endpoint")
    asked.add_argument("--dead-seconds", type=float, default=120.0)
    asked.add_argument("--waiting", type=int, default=2000, help="for the endpoint that comes back")
    asked.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return asked.parse_args()


def main() -> None:
    asked = options()
    print(f"{asked.rounds} rounds; {machine()}")
    with tempfile.TemporaryDirectory(prefix="tempa-bench-") as folder, standing(Path(folder)) as stage:
        _measure(stage, asked)


def _measure(stage: Stage, asked: argparse.Namespace) -> None:
    cost, prompt = Cost(stage, asked.deliveries), Promptness(stage, asked.seconds)
    recovery, memory = Recovery(stage, asked.waiting), Memory(stage)
    for _ in range(asked.rounds):
        if "cost" in asked.parts:
            cost.round()
        if "prompt" in asked.parts:
            prompt.beside_bad_ones()
            if cost.rates:
                prompt.at(cost.rates[-1] / 2)
        if "recovery" in asked.parts:
            recovery.round()
        if "memory" in asked.parts:
            memory.round()
    dead = bothered(stage, asked.pending, asked.dead_seconds) if "dead" in asked.parts else []
    tables = {
        "cost": [("CPU a delivery", cost.rows()), ("ratios of rounds", cost.ratio_rows())],
        "prompt": [("promptness", prompt.rows()), ("the machine meanwhile", weather_rows(prompt.weathers))],
        "dead": [("an endpoint that is down", dead)],
        "recovery": [("an endpoint that comes back", recovery.rows())],
        "memory": [("memory", memory.rows())],
    }
    for part in asked.parts:
        for title, rows in tables[part]:
            print_rows(title, rows)


if __name__ == "__main__":
    main()
