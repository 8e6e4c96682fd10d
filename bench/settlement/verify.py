"""What verifying a transaction costs beside parsing its JSON: `python bench/settlement/verify.py`.

Over the fixtures of the development chain, as `getTransaction` answers in `jsonParsed` and in `json`. The
best of several rounds: a shared machine only ever adds time. Exits 1 if the mean costs over three parses.
"""

from __future__ import annotations

import json
import sys
from timeit import timeit
from typing import TYPE_CHECKING, Any

from tempa.settlement.model import Treasury, TreasuryAccount
from tempa.settlement.verify import verify
from tempa.testing.devchain.fixtures import cases

if TYPE_CHECKING:
    from collections.abc import Callable

RATIO_MAX = 3.0
CALLS, ROUNDS = 100, 15


def microseconds(*works: Callable[[], object]) -> list[float]:
    """Of one call of each, in its best round; in turns, so that both meet the same neighbours."""
    rounds = [[timeit(work, number=CALLS) for work in works] for _ in range(ROUNDS)]
    return [min(times) / CALLS * 1e6 for times in zip(*rounds, strict=True)]


def treasury_of(played: dict[str, Any]) -> Treasury:
    """The case's allow-list."""
    rows = played["treasury"]["accounts"]
    accounts = (TreasuryAccount(**{**row, "extensions": frozenset(row["extensions"])}) for row in rows)
    return Treasury(cluster=played["treasury"]["cluster"], accounts=tuple(accounts))


def measured(played: dict[str, Any], encoding: str) -> tuple[str, int, float, float]:
    """Name, size of the answer in bytes, microseconds to parse it and to verify it."""
    body = json.dumps(played["encodings"][encoding]).encode()
    answer, treasury, signature = json.loads(body), treasury_of(played), played["signature"]
    parsing, verifying = microseconds(lambda: json.loads(body), lambda: verify(answer, treasury, signature))
    return played["name"], len(body), parsing, verifying


def main() -> int:
    worst = 0.0
    for encoding in ("jsonParsed", "json"):
        rows = [measured(played, encoding) for played in cases()]
        print(f"{encoding:24} {'bytes':>7} {'parse us':>9} {'verify us':>9} {'ratio':>6}")
        for name, size_bytes, parsing, verifying in rows:
            print(f"{name:24} {size_bytes:7} {parsing:9.1f} {verifying:9.1f} {verifying / parsing:6.2f}")
        ratio = sum(row[3] for row in rows) / sum(row[2] for row in rows)
        print(f"{'all':24} {'':7} {'':9} {'':9} {ratio:6.2f}\n")
        worst = max(worst, ratio)
    return int(worst > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
