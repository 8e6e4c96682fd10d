"""Reading a history page by page: where to go on, when it is whole, and which nodes are not believed."""

from __future__ import annotations

from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core import base58
from tempa.settlement.history import OVERLAP_SLOTS, Reader, advanced, head
from tempa.settlement.inbox import Cursor, Unread
from tempa.settlement.ports import Sighting, Trouble
from tempa.settlement.quorum import common_slot

if TYPE_CHECKING:
    from collections.abc import Sequence

ADDRESS = base58.encode(bytes(31) + b"\x01")


def row(number: int, slot: int) -> Sighting:
    return Sighting(base58.encode(number.to_bytes(64, "big")), slot, failed=False, block_time=None)


class Backends:
    """Several machines behind one address: each call goes to another, with an order of its own in a slot."""

    name = "backends"

    def __init__(self, rows: Sequence[Sighting], count: int, seed: int = 7) -> None:
        dice = Random(seed)
        self._orders = [_shuffled(rows, dice) for _ in range(count)]
        self._dice = dice
        self.calls = 0

    async def signatures_for_address(
        self, address: str, *, before: str | None, limit: int, min_context_slot: int
    ) -> list[Sighting]:
        self.calls += 1
        rows = self._orders[self._dice.randrange(len(self._orders))]
        places = [at for at, one in enumerate(rows) if one.signature == before]
        start = places[0] + 1 if places else 0 if before is None else len(rows)
        return rows[start : start + limit]


def _shuffled(rows: Sequence[Sighting], dice: Random) -> list[Sighting]:
    ordered = sorted(rows, key=lambda one: one.slot, reverse=True)
    told: list[Sighting] = []
    for _, group in groupby(ordered, key=lambda one: one.slot):
        mixed = list(group)
        dice.shuffle(mixed)
        told += mixed
    return told


class Told:
    """A node that gives its pages one after the other, and what was asked of it."""

    name = "told"

    def __init__(self, *pages: list[Sighting]) -> None:
        self._pages = list(pages)
        self.asked: list[tuple[str | None, int]] = []

    async def signatures_for_address(
        self, address: str, *, before: str | None, limit: int, min_context_slot: int
    ) -> list[Sighting]:
        self.asked.append((before, min_context_slot))
        return self._pages.pop(0) if self._pages else []


async def read_all(node: Any, unread: Unread, *, limit: int = 3, bound: int = 10_000) -> tuple[set[str], Any]:
    """Everything that was taken, and how it ended: None if the stretch is whole."""
    taken: set[str] = set()

    async def take(rows: Sequence[Sighting]) -> None:
        taken.update(one.signature for one in rows)

    reader = Reader(node, ADDRESS, bound, take, limit)
    for _ in range(1_000):
        page = await reader.read(unread)
        if isinstance(page, Trouble) or page.unread is None:
            return taken, page if isinstance(page, Trouble) else None
        unread = page.unread
    raise AssertionError("it never ends")


@given(
    st.lists(st.integers(min_value=1_000, max_value=1_020), min_size=40, max_size=80),
    st.integers(min_value=7, max_value=12),
    st.integers(min_value=0, max_value=2**32),
)
async def test_backends_that_differ_within_a_slot_hide_nothing(
    slots: list[int], limit: int, seed: int
) -> None:
    """Wherever two slots fit into a page. In a slot of more than a page the node's order has to hold."""
    few = [slot for at, slot in enumerate(slots) if slots[:at].count(slot) < limit // 2]
    rows = [row(number, slot) for number, slot in enumerate(few, start=1)]

    taken, trouble = await read_all(Backends(rows, 3, seed), head(None, 10_000), limit=limit)

    assert trouble is None
    assert taken == {one.signature for one in rows}


async def test_a_slot_of_many_pages_is_read_through() -> None:
    rows = [row(number, 1_000) for number in range(1, 30)]

    taken, trouble = await read_all(Backends(rows, 1), head(None, 10_000))

    assert (len(taken), trouble) == (29, None)


async def test_it_ends_below_the_overlap() -> None:
    """512 slots below the cursor; the page in which the edge lies is read to its end."""
    rows = [row(slot, slot) for slot in range(1, 3_000)]
    node = Backends(rows, 1)

    taken, _ = await read_all(node, head(Cursor(2_900, rows[2_899].signature), 2_999), limit=100)

    oldest = min(one.slot for one in rows if one.signature in taken)
    assert OVERLAP_SLOTS >= 512
    assert 2_900 - OVERLAP_SLOTS - 100 <= oldest < 2_900 - OVERLAP_SLOTS


async def test_a_history_that_ends_without_what_was_read_before_is_lost() -> None:
    known = row(1, 1_000)
    unread = head(Cursor(1_000, known.signature), 2_000)

    _, lost = await read_all(Told([row(9, 1_900)]), unread)
    assert lost.reason == "history_lost"
    _, whole = await read_all(Told([row(9, 1_900), known]), unread)
    assert whole is None
    _, older = await read_all(Told([row(9, 1_900), row(2, 400)]), unread)
    assert older is None


@pytest.mark.parametrize(
    "pages",
    [
        [[row(1, 1_000), row(2, 1_001)]],
        [[row(1, 1_000), row(2, 999)], [row(3, 1_005)]],
        [[row(1, 1_000), row(2, 1_000)], [row(2, 1_000)]],
    ],
    ids=["oldest first", "begins anew", "stands still"],
)
async def test_a_node_that_does_not_go_back_in_time_is_not_believed(pages: list[list[Sighting]]) -> None:
    taken, trouble = await read_all(Told(*pages), head(None, 10_000))

    assert trouble.reason == "answer_unreadable"
    assert taken == {
        one.signature for page in pages for one in page
    }  # what it tells is looked up all the same


async def test_a_backend_has_to_know_where_the_page_before_ended() -> None:
    """Else it would end the history there: it tells nothing behind a signature that it has not seen."""
    node = Told([row(1, 12_000), row(2, 11_000), row(3, 9_000)], [])

    await read_all(node, head(None, 10_000))

    assert node.asked == [(None, 10_000), (row(2, 11_000).signature, 11_000)]


def test_a_cursor_stays_where_it_was_on_a_node_that_fell_back() -> None:
    before = Cursor(5_000, "seen")

    assert head(before, 4_000).floor == 4_000 - OVERLAP_SLOTS
    assert advanced(before, 4_000, None, None) == before


def test_what_is_unread_further_down_is_not_forgotten_by_a_new_head() -> None:
    unread = Unread(before="b", slot=900, floor=0, known=None)

    assert advanced(Cursor(1_000, "a", unread), 1_100, "c", None) == Cursor(1_100, "c", unread)
    assert advanced(None, 1_100, "c", unread) == Cursor(1_100, "c", unread)


@pytest.mark.parametrize(
    ("slots", "common"), [([], 0), ([7], 7), ([7, 5], 5), ([2**60, 9, 8], 9), ([5, 5, 1], 5)]
)
def test_what_one_node_alone_has_reached_does_not_count(slots: list[int], common: int) -> None:
    assert common_slot(slots) == common
