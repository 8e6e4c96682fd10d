"""The table of reasons is closed: every code that the slice gives stands in it, and every row is given."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tempa.adapters import chains
from tempa.settlement import reasons
from tempa.settlement.reasons import REASONS, Kind, is_again

SLICE = Path(reasons.__file__).parent
GIVERS = [*SLICE.glob("*.py"), *Path(chains.__file__).parent.rglob("*.py")]


def words_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_no_row_is_idle() -> None:
    given = set().union(*(words_of(file) for file in GIVERS if file.name != "reasons.py"))

    assert not REASONS.keys() - given


@pytest.mark.parametrize("code", sorted(REASONS))
def test_each_reason_says_what_to_do_in_whole_sentences(code: str) -> None:
    words = REASONS[code].words

    assert words.endswith(".")
    assert words.count(". ") + words.count("; ") + words.count(": ") >= 1
    assert "  " not in words


def test_only_waiting_may_help_what_waits() -> None:
    kinds = {Kind.PENDING, Kind.TRANSIENT}

    assert {code for code in REASONS if is_again(code)} == {
        code for code, reason in REASONS.items() if reason.kind in kinds
    }
    assert not is_again("transaction_failed")
    assert is_again("not_found_yet")
