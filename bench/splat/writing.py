"""How fast a million Gaussians of degree 0 are written, beside a plain copy of the same bytes.

`python -m bench.splat.writing [--rounds 7] [--count 1000000]`. Both sides flush the file to the disk. A
round writes and copies in turns, so that both meet the same disk; where the disk changed its speed
between the two, the pair is void.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.probes import machine, weather
from bench.ratios import Goal, Pair, ratios
from bench.table import Row, print_rows, weather_rows
from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.formats.verify import verify
from tempa.engines.splat.gaussians import Gaussians, of_colors

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 1_000_000
ROUNDS = 7
TRIES = 5  # a round takes the best of so many on each side: what else runs disturbs single ones
COPY_RATIO = Goal(0.8, at_least=True)
SPZ_SECONDS = Goal(1.0, at_least=False)
COMPARED = ("ply", "splat")


def surface(count: int) -> Gaussians:
    """Flat discs all over a bumpy coloured ball: as an engine makes them, and neither noise nor nothing."""
    place = np.arange(count) + 0.5
    height, turn = 1 - 2 * place / count, np.pi * (1 + 5**0.5) * place
    ring = np.sqrt(1 - height**2)
    normal = np.stack((ring * np.cos(turn), ring * np.sin(turn), height), axis=1)
    radius = 0.35 + 0.05 * np.sin(6 * normal[:, 0]) * np.cos(5 * normal[:, 1])
    half = np.stack((1 + height, -normal[:, 1], normal[:, 0], np.zeros(count)), axis=1)
    side = np.sqrt(4 * np.pi * 0.35**2 / count)
    return of_colors(
        normal * radius[:, None],
        np.array((0.75, 0.75, 0.1)) * side * (1 + 0.2 * np.sin(9 * normal)),
        half / np.linalg.norm(half, axis=1, keepdims=True),
        0.9 + 0.09 * np.cos(7 * normal[:, 1]),
        0.5 + 0.5 * np.sin(normal * (12, 9, 15)),
    )


def measure(folder: Path, *, count: int = COUNT, rounds: int = ROUNDS) -> list[Row]:
    """All figures; the folder must lie on the disk in question."""
    gaussians = surface(count)
    against_copy = [_against_copy(name, gaussians, folder, rounds) for name in COMPARED]
    millions = count / 1e6
    return [
        *against_copy,
        *(
            Row(
                f".{name} written and flushed, s a million",
                [seconds / millions for seconds in _written(name, gaussians, folder, rounds)],
                SPZ_SECONDS if name == "spz" else None,
                note=_size(name, folder, count),
            )
            for name in FORMATS
        ),
        *(
            Row(f".{name} read, s a million", [seconds / millions for seconds in _read(name, folder, rounds)])
            for name in FORMATS
        ),
        *(
            Row(
                f".{name} read twice and compared, s a million",
                [_seconds(lambda name=name: verify(_path(name, folder), name, gaussians)) / millions],  # type: ignore[misc]
            )
            for name in FORMATS
        ),
    ]


def _against_copy(name: str, gaussians: Gaussians, folder: Path, rounds: int) -> Row:
    """How fast, as a multiple of a copy's speed; both make a new file."""
    path, copy = _path(name, folder), folder / "copy"
    _flushed(path, lambda: write(name, gaussians, path))
    pairs = []
    for _ in range(rounds):
        before = weather(folder).flushes_per_second
        copied, wrote = [], []
        for _ in range(TRIES):
            copy.unlink(missing_ok=True)
            copied.append(_seconds(lambda: _flushed(copy, lambda: shutil.copyfile(path, copy))))
            copy.unlink()
            wrote.append(_seconds(lambda: _flushed(copy, lambda: write(name, gaussians, copy))))
        pairs.append(Pair(1 / min(wrote), 1 / min(copied), (before, weather(folder).flushes_per_second)))
    counted = ratios(pairs)
    return Row(f".{name}: speed as a multiple of a copy's", counted, COPY_RATIO, len(pairs) - len(counted))


def _written(name: str, gaussians: Gaussians, folder: Path, rounds: int) -> list[float]:
    path = _path(name, folder)
    return [
        _seconds(lambda: _flushed(path, lambda: write(name, gaussians, path)))
        for _ in range(max(3, rounds // 2))
    ]


def _read(name: str, folder: Path, rounds: int) -> list[float]:
    return [_seconds(lambda: read(_path(name, folder))) for _ in range(max(3, rounds // 2))]


def _size(name: str, folder: Path, count: int) -> str:
    return f"{_path(name, folder).stat().st_size / count:.1f} bytes each"


def _path(name: str, folder: Path) -> Path:
    return folder / FORMATS[name].file_name


def _flushed(path: Path, make: Callable[[], object]) -> None:
    make()
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--count", type=int, default=COUNT)
    told = arguments.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = Path(place)
        weathers = [weather(folder)]
        rows = measure(folder, count=told.count, rounds=told.rounds)
        weathers.append(weather(folder))
        print_rows(f"{told.count:,} Gaussians of degree 0", [*rows, *weather_rows(weathers)])


if __name__ == "__main__":
    main()
