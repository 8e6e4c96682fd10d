"""A slot whose parent nobody told of shows that something was lost; leaders that skip slots show nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tempa.settlement.slots import SLOTS_KEPT, SlotChain


def told(slots: list[tuple[int, int | None]]) -> list[bool]:
    chain = SlotChain()
    return [chain.follows(slot, parent) for slot, parent in slots]


def test_the_first_slot_follows_on_anything() -> None:
    assert told([(100, 99)]) == [True]


def test_a_skipped_slot_is_no_loss() -> None:
    assert told([(100, 99), (103, 100), (104, 103)]) == [True, True, True]


def test_a_parent_that_was_not_told_of_is_a_loss_and_told_once() -> None:
    assert told([(100, 99), (102, 101), (103, 102)]) == [True, False, True]


def test_a_fork_builds_on_an_older_slot_that_was_told_of() -> None:
    assert told([(100, 99), (101, 100), (102, 100), (103, 102)]) == [True] * 4


def test_a_slot_without_a_parent_says_nothing() -> None:
    assert told([(100, 99), (105, None), (106, 105)]) == [True] * 3


@given(st.lists(st.integers(1, 4), min_size=2, max_size=60), st.data())
def test_whichever_slot_is_lost_the_next_one_shows_it(steps: list[int], data: st.DataObject) -> None:
    slots = [1000 + sum(steps[:count]) for count in range(len(steps) + 1)]
    chain = list(zip(slots[1:], slots, strict=False))
    lost = data.draw(st.integers(1, len(chain) - 1)) if len(chain) > 1 else 0
    whole = told([(slot, parent) for slot, parent in chain])
    holed = told([pair for at, pair in enumerate(chain) if at != lost])
    assert all(whole)
    assert holed.count(False) == (1 if 0 < lost < len(chain) - 1 else 0)


def test_it_remembers_so_many_slots_and_no_more() -> None:
    chain = SlotChain()
    for slot in range(SLOTS_KEPT + 1):
        assert chain.follows(slot, slot - 1 if slot else None)
    assert chain.follows(SLOTS_KEPT + 1, 1)  # the oldest that it still knows
    assert not chain.follows(SLOTS_KEPT + 2, 0)
