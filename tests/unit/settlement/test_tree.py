"""A tree that is kept by blocks has the root and paths of the whole list, whatever is added where."""

from __future__ import annotations

import asyncio
import random
from bisect import insort
from dataclasses import dataclass, field

import pytest

from tempa.settlement.merkle import leaf_hash, path_of, root_of
from tempa.settlement.tree import Tree

Place = tuple[int, int]
BLOCK = 8


@dataclass
class Listed:
    """A list whose entries have a number, in the order in which they came, and a place."""

    entries: list[tuple[Place, int]] = field(default_factory=list)  # place and number
    read: int = 0
    last: int = 0

    def add(self, at: int) -> Place:
        self.last += 1
        place = (at, self.last)
        insort(self.entries, (place, self.last))
        return place

    def leaves(self, up_to: int) -> list[bytes]:
        return [leaf_hash(data(place)) for place, number in self.entries if number <= up_to]

    async def page(self, after: Place | None, limit: int, up_to: int) -> list[tuple[Place, bytes]]:
        behind = [
            place for place, number in self.entries if number <= up_to and (after is None or place > after)
        ]
        self.read += len(behind[:limit])
        return [(place, data(place)) for place in behind[:limit]]

    async def lowest(self, after: int, up_to: int) -> Place | None:
        return min((place for place, number in self.entries if after < number <= up_to), default=None)


def data(place: Place) -> bytes:
    return b"%d %d" % place


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 40, 63, 64, 65])
async def test_it_is_the_tree_of_the_whole_list(size: int) -> None:
    listed = Listed()
    places = [listed.add(at) for at in range(size)]
    tree = Tree(listed, BLOCK)

    assert await tree.root(size) == (root_of(listed.leaves(size)), size)
    for index, place in enumerate(places):
        included = await tree.inclusion(place, size)
        assert included is not None
        assert included.at == index
        assert list(included.path) == path_of(listed.leaves(size), index)
    assert await tree.inclusion((-1, 0), size) is None


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_is_added_where_it_goes_on_being_that(seed: int) -> None:
    luck = random.Random(seed)
    listed = Listed()
    tree = Tree(listed, BLOCK)
    for _ in range(60):
        for _ in range(luck.randint(0, 9)):
            listed.add(luck.choice([luck.randint(0, 1000), 1000 + listed.last]))
        up_to = luck.choice([listed.last, listed.last, luck.randint(0, listed.last)])  # an older view too

        root, size = await tree.root(up_to)

        assert (root, size) == (root_of(listed.leaves(up_to)), up_to)


async def test_what_was_read_is_not_read_again_for_what_comes_behind_it() -> None:
    listed = Listed()
    for at in range(1000):
        listed.add(at)
    tree = Tree(listed, BLOCK)
    await tree.root(1000)
    listed.read = 0

    listed.add(1000)
    await tree.root(1001)
    assert listed.read <= BLOCK

    listed.add(900)
    await tree.root(1002)
    assert listed.read <= 1002 - 900 + 3 * BLOCK


async def test_a_read_that_breaks_off_leaves_nothing_half_true() -> None:
    listed = Listed()
    for at in range(50):
        listed.add(at)
    tree = Tree(Torn(listed, pages=3), BLOCK)

    with pytest.raises(ConnectionError):
        await tree.root(50)

    assert await tree.root(50) == (root_of(listed.leaves(50)), 50)


@dataclass
class Torn:
    """Breaks once, after some pages."""

    listed: Listed
    pages: int

    async def page(self, after: Place | None, limit: int, up_to: int) -> list[tuple[Place, bytes]]:
        self.pages -= 1
        if self.pages == 0:
            raise ConnectionError
        return await self.listed.page(after, limit, up_to)

    async def lowest(self, after: int, up_to: int) -> Place | None:
        return await self.listed.lowest(after, up_to)


async def test_who_asks_at_once_for_different_views_gets_each_its_own() -> None:
    listed = Listed()
    for at in range(100):
        listed.add(at * 7 % 100)
    tree = Tree(listed, BLOCK)

    roots = await asyncio.gather(*(tree.root(up_to) for up_to in (100, 50, 100, 73)))

    assert [root for root, _ in roots] == [root_of(listed.leaves(up_to)) for up_to in (100, 50, 100, 73)]
