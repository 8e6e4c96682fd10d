"""Handing out ranges of work to threads. What comes of it does not depend on how many there are."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Result = TypeVar("_Result")


def count_threads() -> int:
    """How many can run at once: cores that this process may use."""
    return len(os.sched_getaffinity(0))


def each(work: Callable[[int], _Result], items: range, threads: int | None = None) -> Sequence[_Result]:
    """The results in the items' order. For one thread, or one item, none is started.

    `work` should be a kernel that releases the interpreter's lock.
    """
    count = min(threads or count_threads(), len(items))
    if count <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, items))
