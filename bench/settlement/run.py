"""Settlement's figures beside their goals.

    make bench-settlement               # all of it, five rounds: some minutes
    make bench-settlement ROUNDS=1      # a try
    make bench-settlement ARGS="--parts hearing credits"

A missed goal is printed as MISSED. How to read the table: docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.probes import machine
from bench.table import print_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "hearing": "hearing of payments",
    "credits": "verified credits",
    "latency": "from finality to credit",
    "verifying": "verifying a transaction",
}


def options() -> argparse.Namespace:
    """What the command line asks for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--folder", type=Path, default=Path("build"), help="on the disk that is measured")
    asked.add_argument("--parts", nargs="+", choices=tuple(TITLES), default=tuple(TITLES))
    return asked.parse_args()


def main() -> None:
    asked = options()
    print(f"{asked.rounds} rounds; {machine()}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for part in asked.parts:
        module = importlib.import_module(f"bench.settlement.{part}")
        with tempfile.TemporaryDirectory(prefix="bench-settlement-", dir=asked.folder) as folder:
            print_rows(TITLES[part], module.measure(Path(folder), rounds=asked.rounds))


if __name__ == "__main__":
    main()
