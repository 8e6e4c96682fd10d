"""Plays many histories, on all cores; each from its seed alone."""

from __future__ import annotations

import asyncio
import atexit
import os
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tempa.adapters.stores.sqlite.schema import prepare
from tests.simulation.places import MEMORY
from tests.simulation.settlement.ground import Ground
from tests.simulation.settlement.history import History
from tests.simulation.settlement.server import FileShelf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulation.settlement.server import Shelf

STEPS = 40
_WITH_THREADS = 8  # each so-manieth history has the store's own threads
_TOLD_MAX = 3


@dataclass
class Played:
    """What happened in all of them, and of the first that went wrong how to play them again."""

    seen: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Played) -> None:
        """Those too."""
        self.seen += other.seen
        self.failures += other.failures


@cache
def ground() -> Ground:
    """One a process: what is played on it is taken back."""
    return Ground()


@cache
def blank() -> Path:
    """A file with tables and nothing in them, for the life of this process."""
    where = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    path = where / f"tempa-blank-{os.getpid()}.db"
    prepare(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma wal_checkpoint(truncate)")
        kept = database.serialize()
    _forget(path)
    path.write_bytes(kept)
    atexit.register(_forget, path)
    return path


def _forget(path: Path) -> None:
    for beside in ("", "-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)


def play_in_files(seeds: Iterable[int]) -> Played:
    """On SQLite."""
    return play(seeds, lambda seed: FileShelf(blank(), threads=seed % _WITH_THREADS == 0))


def play(seeds: Iterable[int], new_shelf: Callable[[int], Shelf]) -> Played:
    """One after the other."""
    played = Played()
    for seed in seeds:
        shelf = new_shelf(seed)
        history = History(seed=seed, ground=ground(), shelf=shelf, steps=STEPS)
        try:
            asyncio.run(history.play())
        except Exception:  # noqa: BLE001 - whatever it is, it is told with what led to it
            if len(played.failures) < _TOLD_MAX:
                played.failures.append(f"seed {seed}: {history.ops}\n{traceback.format_exc()}")
        finally:
            shelf.close()
        played.seen += history.seen
    return played


if __name__ == "__main__":
    sys.exit("\n".join(play_in_files(map(int, sys.argv[1:])).failures) or 0)
