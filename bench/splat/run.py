"""The splats' figures beside their goals.

    make bench-splat               # all of it, five rounds: some minutes
    make bench-splat ROUNDS=1      # a try
    make bench-splat ARGS="--parts relief"

A missed goal is printed as MISSED. What the pictures, the bodies and the scores are:
docs/reference/relief-splat.md.
"""

from __future__ import annotations

from bench import parts

TITLES = {
    "relief": "relief-splat",
    "raster": "the rasteriser",
    "writing": "reading and writing",
}

if __name__ == "__main__":
    parts.run("bench.splat", TITLES, __doc__)
