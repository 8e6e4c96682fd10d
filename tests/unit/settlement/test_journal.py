"""The journal's chain: every alteration is found, whatever of an entry it touches."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.settlement.journal import GENESIS, Draft, JournalEntry, Posting, first_broken, seal

if TYPE_CHECKING:
    from collections.abc import Callable


def a_draft(number: int, amount: int = 5) -> Draft:
    postings = (Posting("chain:treasury:SOL", "SOL", amount), Posting("liab:unallocated", "SOL", -amount))
    return Draft(kind="receipt", key=f"k{number}", at_ms=number, postings=postings, detail={"slot": number})


@pytest.fixture
def entries() -> list[JournalEntry]:
    made: list[JournalEntry] = []
    for number in range(1, 6):
        made.append(seal(a_draft(number, 2**64 - number), number, made[-1].hash if made else GENESIS))
    return made


def test_a_chain_that_nobody_touched_is_whole(entries: list[JournalEntry]) -> None:
    assert first_broken(entries) is None
    assert first_broken([]) is None
    assert first_broken(entries[2:], entries[1].hash) is None


def test_the_hash_is_that_of_the_canonical_document() -> None:
    """Spelt out by hand: members in order, no blanks, amounts as text."""
    text = (
        '{"at_ms":1,"detail":{"slot":1},"key":"k1","kind":"receipt","postings":'
        '[["chain:treasury:SOL","SOL","18446744073709551615"],["liab:unallocated","SOL","-18446744073709551615"]],'
        f'"previous":"{GENESIS}"}}'
    )

    entry = seal(a_draft(1, 2**64 - 1), 1, GENESIS)

    assert entry.hash == hashlib.sha256(text.encode()).hexdigest()


ALTERED: dict[str, Callable[[Draft], dict[str, Any]]] = {
    "kind": lambda _: {"kind": "outflow"},
    "key": lambda _: {"key": "another"},
    "at": lambda draft: {"at_ms": draft.at_ms + 1},
    "amounts": lambda draft: {
        "postings": tuple(line._replace(amount=line.amount * 2) for line in draft.postings)
    },
    "account": lambda draft: {"postings": (draft.postings[0]._replace(account="x"), draft.postings[1])},
    "detail": lambda _: {"detail": {"slot": 0}},
}


@pytest.mark.parametrize("what", sorted(ALTERED))
def test_an_altered_entry_is_found(entries: list[JournalEntry], what: str) -> None:
    draft = entries[2].draft
    entries[2] = replace(entries[2], draft=replace(draft, **ALTERED[what](draft)))

    assert first_broken(entries) == 3


def test_an_entry_that_was_resealed_breaks_the_next(entries: list[JournalEntry]) -> None:
    entries[2] = seal(a_draft(3, 1), 3, entries[1].hash)

    assert first_broken(entries) == 4


def test_an_entry_that_is_missing_or_moved_is_found(entries: list[JournalEntry]) -> None:
    assert first_broken(entries[:2] + entries[3:]) == 4
    assert first_broken([entries[0], entries[2], entries[1], *entries[3:]]) == 3
    assert first_broken(entries[1:]) == 2


def test_nothing_unbalanced_is_sealed() -> None:
    lopsided = replace(a_draft(1), postings=(Posting("a", "SOL", 5), Posting("b", "MINT", -5)))

    with pytest.raises(AssertionError, match="debits and credits differ"):
        seal(lopsided, 1, GENESIS)
