"""Settlement's figures beside their goals.

    make bench-settlement               # all of it, five rounds: some minutes
    make bench-settlement ROUNDS=1      # a try
    make bench-settlement ARGS="--parts hearing credits"

A missed goal is printed as MISSED. How to read the table: docs/reference/benchmarks.md.
"""

from __future__ import annotations

from bench import parts

TITLES = {
    "hearing": "hearing of payments",
    "credits": "verified credits",
    "latency": "from finality to credit",
    "verifying": "verifying a transaction",
}

if __name__ == "__main__":
    parts.run("bench.settlement", TITLES, __doc__)
