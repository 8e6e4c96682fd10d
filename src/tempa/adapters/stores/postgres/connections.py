"""The pool, and which of its errors mean that the store is not available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asyncpg

CONNECTIONS_MAX = 5  # a process: transactions are short, and 200 workers share one server
_CONNECT_SECONDS = 5.0
ACQUIRE_SECONDS = 15.0  # behind as many slow transactions as there are connections
_COMMAND_SECONDS = 30.0  # the longest slice of a re-drive takes a tenth of a second

_LOCK_SECONDS = 2.0
_IDLE_SECONDS = 5.0


BOUNDS = {"lock_timeout": str(round(_LOCK_SECONDS * 1000))}
"""What bounds a statement that is a transaction by itself, in a session of our own."""


def begin(lock_seconds: float = _LOCK_SECONDS, idle_seconds: float = _IDLE_SECONDS) -> str:
    """Starts a transaction: how long it waits for a lock, and how long its client may be silent in it.

    A client that stops in the middle must not keep its locks: others wait for them. Said in every
    transaction, for behind a pooler a session's settings are somebody else's next.
    """
    return (
        f"begin; set local lock_timeout = {round(lock_seconds * 1000)}; "
        f"set local idle_in_transaction_session_timeout = {round(idle_seconds * 1000)}"
    )


BEGIN = begin()

BEGIN_READING = "begin isolation level repeatable read read only; set local statement_timeout = '20s'"

PLANNING = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""How statements that a session keeps are planned: once, and by index. A plan that was made while a table
was nearly empty reads all of it, and stays: in a young database a claim went from 0.3 to 11 ms within 20,000
jobs, and to 22 behind an idle snapshot; with these, to 1.1 (measured). Every statement has its index."""

SESSION = {**PLANNING, **BOUNDS}
"""Behind a pooler none of it: a session is somebody else's next, and without kept statements each is planned
anew."""

# What a server says that is down, full, starting, stopping, or had to choose a victim (SQLSTATE classes).
_FAULT_CLASSES = ("08", "53", "57", "58", "25P03", "40", "XX")
_BUSY = "55P03"  # lock_not_available: somebody held it for longer than lock_timeout


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database is. `pooled`: behind a pooler that gives each transaction any connection."""

    url: str
    pooled: bool = False


async def open_pool(address: Address, size: int = CONNECTIONS_MAX) -> Any:
    """A pool that connects as it is used, so that a server that is down now may come later."""
    return await asyncpg.create_pool(
        address.url,
        min_size=0,
        max_size=size,
        timeout=_CONNECT_SECONDS,
        command_timeout=_COMMAND_SECONDS,
        # Prepared statements live in a session, and a pooler hands every transaction another one.
        statement_cache_size=0 if address.pooled else 256,
        reset=_leave_alone,
        server_settings=None if address.pooled else SESSION,
    )


async def _leave_alone(_: Any) -> None:
    """Ours leave nothing behind in a session, and asyncpg's reset is one more way to the server for each.

    One that is still in a transaction is rolled back before this is called.
    """


def is_victim(error: BaseException) -> bool:
    """Whether the server gave up this transaction for another's sake: tried again it will go through."""
    return isinstance(error, asyncpg.DeadlockDetectedError | asyncpg.SerializationError)


def is_broken(error: BaseException) -> bool:
    """Whether the driver has lost its place in the conversation with the server: nobody may go on with it.

    Seen once in a process that had been stopped for longer than the server waits (SIGSTOP, SIGCONT).
    """
    return isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError)


def is_fault(error: BaseException) -> bool:
    """Whether the server, the way to it or its locks failed, and not what was asked."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state.startswith(_FAULT_CLASSES) or state == _BUSY
    return isinstance(error, OSError | TimeoutError) or is_broken(error)
