"""Runs the commands' flows on PostgreSQL: a transaction each, every answer awaited."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from aiosql.adapters.asyncpg import AsyncPGAdapter

from tempa.adapters.stores.commands.flow import Access, Ask, Moment, Sole, Timed, WriteCounts
from tempa.adapters.stores.postgres.connections import (
    ACQUIRE_SECONDS,
    BEGIN,
    BEGIN_READING,
    is_broken,
    is_fault,
    is_victim,
)
from tempa.adapters.stores.sql import load_queries
from tempa.core.clock import to_ms
from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import ParamSpec

    from tempa.adapters.stores.commands.flow import Done, Flow, Question
    from tempa.core.clock import Clock

    P = ParamSpec("P")

T = TypeVar("T")


class _CountingAdapter(AsyncPGAdapter):
    """aiosql's own answers a write with the server's "UPDATE 3"."""

    async def insert_update_delete(self, conn: Any, query_name: str, sql: str, parameters: Any) -> int:
        tag: str = await super().insert_update_delete(conn, query_name, sql, parameters)  # type: ignore[no-untyped-call]
        return int(tag.rpartition(" ")[2])


SQL: Any = load_queries("postgres", _CountingAdapter)

_LOCKS = frozenset({"lock_claims", "lock_feed", "lock_deliveries", "lock_ledger"})
"""Statements without parameters that only wait: a transaction that begins with one begins by it."""


_GIVE_WAY_SECONDS = (
    0.05  # for whom it was given up: at once again it may come first, and both stand as before
)


class _GivenUp(StoreUnavailable):
    """The server chose this transaction as a victim: nothing of it stands, and nobody is in its way now."""


class PostgresAccess(Access):
    """The way to write and to read. `clock`: in tests, in place of the database's own.

    `bounded`: sessions have what bounds a transaction (`BOUNDS`) for themselves. Only then may a statement
    go without one.
    """

    def __init__(
        self, pool: Any, ring: Callable[..., None], clock: Clock | None = None, *, bounded: bool = True
    ) -> None:
        super().__init__()
        self._pool, self._ring, self._clock, self._bounded = pool, ring, clock, bounded
        self.writes = WriteCounts()

    async def _write(self, flow: Callable[P, Flow[Done[T]]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            try:
                done = await self._transact(flow(*args, **kwargs))
            except _GivenUp:
                await asyncio.sleep(_GIVE_WAY_SECONDS)
                done = await self._transact(flow(*args, **kwargs))
        except StoreUnavailable:
            self.writes.failures += 1
            raise
        self.writes.commits += 1
        self.writes.commands += 1
        self._ring(*done.topics)
        return done.answer

    async def _read(self, flow: Callable[P, Flow[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._transaction(BEGIN_READING) as connection:
            return await self._run(connection, flow(*args, **kwargs))

    async def _transact(self, flow: Flow[Done[T]]) -> Done[T]:
        """A lock that is asked for first is taken on the way that begins the transaction.

        Statements of one message have a snapshot each, so what follows the lock sees what it waited for.
        """
        first = next(flow)
        if isinstance(first, Sole) and self._bounded:
            async with self._connection() as connection:
                crash_point("commit.asked")
                answer = await self._answer(connection, first)
                crash_point("commit.done")
                return await self._run(connection, flow, answer)
        if isinstance(first, Ask) and first.query in _LOCKS:
            async with self._transaction(f"{BEGIN}; {getattr(SQL, first.query).sql}") as connection:
                return await self._run(connection, flow)
        async with self._transaction(BEGIN) as connection:
            return await self._run(connection, flow, await self._answer(connection, first))

    async def _ask(self, ask: Ask) -> Any:
        """The answer to one question: a statement by itself has one view, and needs no transaction."""
        async with self._connection() as connection:
            return await self._answer(connection, ask)

    @contextlib.asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Any]:
        async with self._connection() as connection:
            try:
                await connection.execute(begin)
                yield connection
            except BaseException as error:
                await _roll_back(connection, error)
                raise
            crash_point("commit.asked")
            await connection.execute("commit")
            crash_point("commit.done")

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            async with self._pool.acquire(timeout=ACQUIRE_SECONDS) as connection:
                try:
                    yield connection
                except Exception as error:
                    if is_broken(error):
                        connection.terminate()  # the pool makes another in its place
                    raise
        except Exception as error:
            if is_fault(error):
                raise _unavailable(error) from error
            raise

    async def _run(self, connection: Any, flow: Flow[T], answer: Any = None) -> T:
        while True:
            try:
                question = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self._answer(connection, question)

    async def _answer(self, connection: Any, question: Question) -> Any:
        if isinstance(question, Timed):
            rows = await self._answer(connection, question.ask)
            return rows, await self._moment(connection, rows)
        if isinstance(question, Sole):
            question = question.ask
        if not isinstance(question, Ask):
            return await self._moment(connection)
        parameters = question.parameters
        if question.rows is not None:
            if not question.rows:
                return []
            parameters = {name: [row[name] for row in question.rows] for name in question.rows[0]}
        answer = getattr(SQL, question.query)(connection, **parameters)
        if hasattr(answer, "__aiter__"):
            return [row async for row in answer]
        return await answer

    async def _moment(self, connection: Any, rows: Sequence[Any] = ()) -> Moment:
        """One clock for all that share the database, for leases too: as the last of `rows` tells it."""
        if self._clock is not None:
            now = to_ms(self._clock.now())
        elif rows:
            now = max(row["now"] for row in rows)
        else:
            now = await SQL.now(connection)
        return Moment(now, now)


def _unavailable(error: Exception) -> StoreUnavailable:
    why = str(error) or type(error).__name__  # a timeout has no words
    kind = _GivenUp if is_victim(error) else StoreUnavailable
    return kind(f"The database cannot be used: {why}")


async def _roll_back(connection: Any, error: BaseException) -> None:
    """A connection that cannot even do this is dropped by the pool."""
    if is_broken(error):
        return
    with contextlib.suppress(Exception):
        await connection.execute("rollback")
