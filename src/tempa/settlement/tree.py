"""A hash tree over what the store keeps in an order, without keeping it: by blocks, of which few change.

Of each full block of leaves its root and its last place are kept, 1/1,024 of the list; the leaves of one
block are read again for a path. What is added somewhere spoils the blocks behind it only, and what is added
is mostly new. So a root costs the time of reading what lies behind the lowest new place (the first one in a
process all of it: 19 s for a million on SQLite, in pages of 20 ms), and the memory of a block.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from tempa.settlement.merkle import leaf_hash, path_of, root_of

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_LEAVES = 1024  # a power of two, so that blocks are subtrees; 20 ms of work between two reads

P = TypeVar("P")


class Leaves(Protocol[P]):
    """A list in the order of its places. Each entry has a number too: those up to one never change."""

    async def page(
        self, after: P | None, limit: int, up_to: int
    ) -> Sequence[tuple[P, bytes]]: ...  # places and data, in order
    async def lowest(self, after: int, up_to: int) -> P | None: ...  # place of what was numbered since


class Inclusion(NamedTuple):
    """Where a leaf lies in a list of `size`, and how that is shown."""

    root: bytes
    size: int
    at: int
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Block(Generic[P]):
    last: P
    root: bytes


def _last(block: _Block[Any]) -> Any:
    return block.last


class Tree(Generic[P]):
    """Belongs to one event loop. `leaves` are read in pages of `block_leaves`."""

    def __init__(self, leaves: Leaves[P], block_leaves: int = BLOCK_LEAVES) -> None:
        assert block_leaves & (block_leaves - 1) == 0, "blocks have to be subtrees"
        self._leaves = leaves
        self._block_leaves = block_leaves
        self._blocks: list[_Block[P]] = []
        self._rest: list[tuple[P, bytes]] = []  # behind the last full block, hashed
        self._up_to = 0
        self._turn = asyncio.Lock()

    async def root(self, up_to: int) -> tuple[bytes, int]:
        """The root over what is numbered up to `up_to`, and how many that are. Raises `StoreUnavailable`."""
        async with self._turn:
            await self._catch_up(up_to)
            return root_of(self._tops()), self._size()

    async def inclusion(self, place: P, up_to: int) -> Inclusion | None:
        """How it is shown that what lies at `place` is in the tree; None: nothing does."""
        async with self._turn:
            await self._catch_up(up_to)
            number = self._block_of(place)
            block = await self._hashes(number, up_to)
            index = next((at for at, (found, _) in enumerate(block) if found == place), None)
            if index is None:
                return None
            tops = self._tops()
            path = path_of([each for _, each in block], index) + path_of(tops, number)
            at = number * self._block_leaves + index
            return Inclusion(root_of(tops), self._size(), at, tuple(path))

    async def _catch_up(self, up_to: int) -> None:
        """An older view than the last one is read anew from where they part, as a newer one is."""
        if up_to == self._up_to:
            return
        lowest = await self._leaves.lowest(min(up_to, self._up_to), max(up_to, self._up_to))
        if lowest is not None:
            del self._blocks[self._block_of(lowest) :]
            self._rest = []
            self._up_to = -1  # until it is read to its end, it is nobody's view
            await self._read_on(up_to)
        self._up_to = up_to

    def _block_of(self, place: Any) -> int:
        """The number of the one in which it lies, or would."""
        return bisect_left(self._blocks, place, key=_last)

    async def _read_on(self, up_to: int) -> None:
        while True:
            hashed = await self._hashes(len(self._blocks), up_to)
            if len(hashed) < self._block_leaves:
                self._rest = hashed
                return
            self._blocks.append(_Block(hashed[-1][0], root_of([each for _, each in hashed])))

    async def _hashes(self, number: int, up_to: int) -> list[tuple[P, bytes]]:
        """Of the block's leaves."""
        if self._rest and number == len(self._blocks):
            return self._rest
        after = self._blocks[number - 1].last if number else None
        found = await self._leaves.page(after, self._block_leaves, up_to)
        return [(place, leaf_hash(data)) for place, data in found]

    def _tops(self) -> list[bytes]:
        rest = [root_of([each for _, each in self._rest])] if self._rest else []
        return [block.root for block in self._blocks] + rest

    def _size(self) -> int:
        return len(self._blocks) * self._block_leaves + len(self._rest)
