"""A transaction written once for every database: a generator that asks named queries.

    def _revoke(account: str, key_id: str) -> Flow[Done[bool]]:
        moment = yield MOMENT
        revoked = yield ASK.revoke_key(account=account, key_id=key_id, now=moment.now)
        return Done(revoked > 0)

The commands of this folder are such generators; a database adapter runs them: SQLite's in the thread of
its connection, PostgreSQL's by awaiting each answer. Neither repeats what a command decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A named query with its parameters by name; `rows` for one that is about many rows.

    The answer is what aiosql's operator says: a row or None (`^`), a value (`$`), the number of rows
    written (`!`), and without an operator a list of rows.
    """

    query: str
    parameters: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] | None = None


class _Queries:
    """`ASK.job_by_id(job_id=...)` is an Ask of the query of that name."""

    def __getattr__(self, query: str) -> partial[Ask]:
        return partial(_ask, query)


def _ask(query: str, rows: Sequence[Mapping[str, Any]] | None = None, /, **parameters: Any) -> Ask:
    return Ask(query, parameters, rows)


ASK = _Queries()


class _Moment:
    """Asks what time it is; the answer is a Moment."""


MOMENT = _Moment()


@dataclass(frozen=True, slots=True)
class Moment:
    """The time inside a transaction, so that times follow the order of commits. Milliseconds.

    `now` is Unix time. `tick` is for leases: the database's clock where several machines share it, a
    monotonic one where a single process holds them, so that a jump of the wall clock ends none.
    """

    now: int
    tick: int

    def lease_until(self, lease_seconds: float) -> int:
        """When a lease given at this moment runs out, on the clock of `tick`."""
        return self.tick + round(lease_seconds * 1000)


@dataclass(frozen=True, slots=True)
class Timed:
    """Asks for a query's rows and, behind them, what time it is; the answer is both.

    On PostgreSQL the time comes as a column `now` of the rows: one way to the server, not two.
    """

    ask: Ask


@dataclass(frozen=True, slots=True)
class Sole:
    """The only question of its command: one statement, which is a transaction by itself."""

    ask: Ask


Question = Ask | Timed | Sole | _Moment
Flow = Generator[Question, Any, T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a transaction came to: its answer, and the topics to ring once it is on disk."""

    answer: T
    topics: tuple[str, ...] = ()


@dataclass(slots=True)
class WriteCounts:
    """What a store has written since it was opened."""

    commands: int = 0
    commits: int = 0
    failures: int = 0  # commits that failed: nothing of them was acknowledged


class Access(ABC):
    """Base of the commands: the way to write and the way to read. Each adapter has its own."""

    @abstractmethod
    async def _write(self, flow: Callable[P, Flow[Done[T]]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `flow` as one transaction; returns once that is on disk, its topics rung."""

    @abstractmethod
    async def _read(self, flow: Callable[P, Flow[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `flow` on one consistent view of what is committed."""
