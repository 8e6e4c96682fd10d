"""What verifying a transaction costs beside parsing its JSON.

Over the fixtures of the development chain, as `getTransaction` answers in `jsonParsed` and in `json`. The
best of several rounds: a shared machine only ever adds time.
"""

from __future__ import annotations

import json
from timeit import timeit
from typing import TYPE_CHECKING, Any

from bench.ratios import Goal
from bench.table import Row
from tempa.settlement.model import Treasury, TreasuryAccount
from tempa.settlement.verify import verify
from tempa.testing.devchain.fixtures import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALLS = 100


def measure(folder: Path, *, rounds: int) -> list[Row]:  # noqa: ARG001 - as all parts are asked
    """Rows of the table."""
    rows = []
    for encoding in ("jsonParsed", "json"):
        both = [_measured(played, encoding, rounds) for played in cases()]
        ratio = sum(verifying for _, verifying in both) / sum(parsing for parsing, _ in both)
        rows.append(Row(f"verifying, as a multiple of parsing {encoding}", [ratio], Goal(3, at_least=False)))
        rows.append(Row("... of single fixtures", [verifying / parsing for parsing, verifying in both]))
    return rows


def _measured(played: dict[str, Any], encoding: str, rounds: int) -> tuple[float, float]:
    """Microseconds to parse an answer, and to verify it."""
    body = json.dumps(played["encodings"][encoding]).encode()
    answer, treasury, signature = json.loads(body), _treasury_of(played), played["signature"]
    works = (lambda: json.loads(body)), (lambda: verify(answer, treasury, signature))
    return _microseconds(works, 3 * rounds)


def _microseconds(
    works: tuple[Callable[[], object], Callable[[], object]], rounds: int
) -> tuple[float, float]:
    """Of one call of each, in its best round; in turns, so that both meet the same neighbours."""
    times = [[timeit(work, number=CALLS) for work in works] for _ in range(rounds)]
    parsing, verifying = (min(of_one) / CALLS * 1e6 for of_one in zip(*times, strict=True))
    return parsing, verifying


def _treasury_of(played: dict[str, Any]) -> Treasury:
    """The case's allow-list."""
    rows = played["treasury"]["accounts"]
    accounts = (TreasuryAccount(**{**row, "extensions": frozenset(row["extensions"])}) for row in rows)
    return Treasury(cluster=played["treasury"]["cluster"], accounts=tuple(accounts))
