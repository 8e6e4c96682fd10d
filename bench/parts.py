"""A bench of several parts, each a module whose `measure` gives the rows of a table."""

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


def run(package: str, titles: Mapping[str, str], description: str | None) -> None:
    """Measure the parts that the command line asks for. `titles`: of the tables, by the module's name."""
    asked = _options(titles, description)
    print(f"{asked.rounds} rounds; {machine()}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for part in asked.parts:
        measure = _measuring(f"{package}.{part}")
        if measure is None:
            print(f"\n{titles[part]}: not run")
            continue
        with tempfile.TemporaryDirectory(prefix="bench-", dir=asked.folder) as folder:
            print_rows(titles[part], measure(Path(folder), rounds=asked.rounds))


def _options(titles: Mapping[str, str], description: str | None) -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--folder", type=Path, default=Path("build"), help="on the disk that is measured")
    asked.add_argument("--parts", nargs="+", choices=tuple(titles), default=tuple(titles))
    return asked.parse_args()


def _measuring(module: str) -> Callable[..., list[Row]] | None:
    """None: what it measures is not installed."""
    try:
        measure: Callable[..., list[Row]] = importlib.import_module(module).measure
    except ModuleNotFoundError:
        return None
    return measure
