"""Turns of accounts, against what stride scheduling promises."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.adapters.stores.commands import shares as module
from tempa.adapters.stores.commands.shares import Shares, Waiting

# Powers of two: strides that floats hold exactly, so that the bounds below may be sharp.
WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0])
ACCOUNTS = st.dictionaries(st.sampled_from("abcdefgh"), WEIGHTS, min_size=1)


def start(shares: Shares, waiting: list[Waiting], slots: int) -> list[str]:
    """One claim of `slots` jobs where everybody has plenty, and its charge."""
    turns = shares.turns(waiting)
    starts: list[str] = []
    while len(starts) < slots and (account := turns.next()) is not None:
        starts.append(account)
        turns.took()
    shares.charge({each.account: each for each in waiting}, starts)
    return starts


def everybody(weights: dict[str, float]) -> list[Waiting]:
    return [Waiting(account, weight) for account, weight in weights.items()]


def longest_wait(starts: list[str], account: str) -> int:
    """The most turns of others in a row, before, between and after its own."""
    waits = "".join("x" if name == account else "." for name in starts).split("x")
    return max(map(len, waits))


@given(ACCOUNTS, st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_nobody_who_waits_is_passed_over_for_longer_than_his_weight_says(
    weights: dict[str, float], claims: list[int]
) -> None:
    """Between two of its starts, 1/weight apart, another one has floor(its weight / weight) + 1 at most."""
    shares = Shares()
    starts = [name for slots in claims for name in start(shares, everybody(weights), slots)]

    for account, weight in weights.items():
        others = [other for name, other in weights.items() if name != account]
        assert longest_wait(starts, account) <= sum(math.floor(other / weight) + 1 for other in others)


@given(st.integers(1, 20), st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_equals_take_turns_one_by_one(count: int, claims: list[int]) -> None:
    shares = Shares()
    equals = everybody(dict.fromkeys([f"a{number}" for number in range(count)], 1.0))
    starts = [name for slots in claims for name in start(shares, equals, slots)]

    counts = [Counter(starts)[each.account] for each in equals]
    assert max(counts) - min(counts) <= 1
    assert (
        max(longest_wait(starts, each.account) for each in equals) <= max(count - 1, 0) or len(starts) < count
    )


@given(ACCOUNTS, st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_at_every_moment_shares_are_those_of_the_weights_to_within_one_start(
    weights: dict[str, float], claims: list[int]
) -> None:
    """Starts divided by weight differ by no more than one stride of each (exact fractions)."""
    shares = Shares()
    starts: list[str] = []
    for slots in claims:
        starts += start(shares, everybody(weights), slots)
        served = {name: Fraction(starts.count(name)) / Fraction(weight) for name, weight in weights.items()}
        for name, other in ((name, other) for name in weights for other in weights):
            assert served[name] - served[other] <= 1 / Fraction(weights[name])


@given(ACCOUNTS, st.integers(1, 30), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5)))
def test_nobody_gets_more_than_there_is_room_and_no_slot_stays_empty(
    weights: dict[str, float], slots: int, rooms: dict[str, int]
) -> None:
    waiting = [Waiting(name, weight, rooms.get(name)) for name, weight in weights.items()]

    counts = Counter(start(Shares(), waiting, slots))

    assert all(counts[each.account] <= each.room for each in waiting if each.room is not None)
    unlimited = any(each.room is None for each in waiting)
    room = slots if unlimited else sum(each.room or 0 for each in waiting)
    assert counts.total() == min(slots, room)


@given(ACCOUNTS, st.integers(0, 40), st.integers(1, 20))
def test_a_rest_earns_nothing_and_costs_nothing(weights: dict[str, float], alone: int, slots: int) -> None:
    """Who comes to others that have run for long is treated as they are: as if all had just begun."""
    shares = Shares()
    weights = {**weights, "rested": 1.0}
    others = [each for each in everybody(weights) if each.account != "rested"]
    start(shares, everybody(weights), len(weights))
    start(shares, others, alone)

    starts = start(shares, everybody(weights), slots)

    mine, total = starts.count("rested"), sum(weights.values())
    assert mine <= math.ceil(slots / total) + len(others)
    assert longest_wait(starts, "rested") <= sum(math.floor(each.weight) + 1 for each in others)


def test_who_has_nothing_due_is_passed_over_and_not_charged() -> None:
    shares = Shares()
    waiting = everybody({"a": 1.0, "b": 1.0})
    turns = shares.turns(waiting)
    assert turns.next() == "a"
    turns.drop()
    assert turns.next() == "b"
    turns.took()
    shares.charge({each.account: each for each in waiting}, ["b"])

    assert start(shares, waiting, 2) == ["a", "b"]


def test_a_look_alone_changes_nothing() -> None:
    """A claim that is rolled back, or whose jobs a cancel took away, has used no turn."""
    shares = Shares()
    turns = shares.turns(everybody({"a": 1.0, "b": 1.0}))
    turns.took()

    assert shares.turns(everybody({"a": 1.0, "b": 1.0})).next() == "a"


def test_nobody_waits_nobody_goes() -> None:
    assert Shares().turns([]).next() is None


def test_accounts_long_gone_are_forgotten_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORGET_BEYOND", 10)
    shares = Shares()
    for number in range(1000):
        start(shares, [Waiting(f"once-{number}")], 3)

    assert len(shares._served) <= 11
    again = start(shares, everybody({"once-1": 1.0, "new": 1.0}), 10)
    assert Counter(again) == {"once-1": 5, "new": 5}
