"""The splats' figures beside their goals.

    make bench-splat               # all of it, five rounds: some minutes
    make bench-splat ROUNDS=1      # a try
    make bench-splat ARGS="--parts relief"

A missed goal is printed as MISSED. What the pictures, the bodies and the scores are:
docs/reference/relief-splat.md.
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
    from collections.abc import Callable, Mapping

    from bench.table import Row

TITLES: Mapping[str, str] = {
    "relief": "relief-splat",
    "raster": "the rasteriser",
    "writing": "reading and writing",
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
        measure = _part(part)
        if measure is None:
            print(f"\n{TITLES[part]}: not run")
            continue
        with tempfile.TemporaryDirectory(prefix="bench-splat-", dir=asked.folder) as folder:
            print_rows(TITLES[part], measure(Path(folder), rounds=asked.rounds))


def _part(name: str) -> Callable[..., list[Row]] | None:
    """What measures a part, when what it measures is installed."""
    try:
        module = importlib.import_module(f"bench.splat.{name}")
    except ModuleNotFoundError:
        return None
    measure: Callable[..., list[Row]] = module.measure
    return measure


if __name__ == "__main__":
    main()
