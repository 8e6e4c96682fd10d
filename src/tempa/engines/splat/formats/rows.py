"""Interleaved records written fast: many Gaussians, a few bytes of each attribute after one another.

A file of 68 MB is mostly copied by the kernel: while one core is there, the other one fills the next
block.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.raster.threads import count_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

_BLOCK = 1 << 14  # rows at a time: a block of them stays in the cache between its columns and the file


def write(
    path: Path, head: bytes, count: int, width: int, fill: Callable[[NDArray[Any], slice], None]
) -> None:
    """A file of `head` and `count` records of `width` float32 (or as many bytes in fours).

    `fill(rows, which)` fills zeroed or once filled records (m, width) with the Gaussians of a slice.
    The bytes do not depend on the number of cores.
    """
    cores = min(count_threads(), -(-count // _BLOCK))
    share = -(-count // cores)
    with path.open("wb") as file:
        file.write(head)
        file.flush()

        def part(start: int) -> None:
            rows = np.zeros((min(_BLOCK, count), width), "<f4")
            stop = min(start + share, count)
            for first in range(start, stop, _BLOCK):
                block = rows[: min(_BLOCK, stop - first)]
                fill(block, slice(first, first + len(block)))
                _placed(file.fileno(), block.data.cast("B"), len(head) + first * width * 4)

        with ThreadPoolExecutor(max_workers=cores) as pool:
            list(pool.map(part, range(0, count, share)))


def _placed(descriptor: int, content: memoryview, offset: int) -> None:
    """All of it: a disk that is nearly full takes a part first, and tells only then."""
    while content:
        size = os.pwrite(descriptor, content, offset)
        content, offset = content[size:], offset + size
